// Everything that an instruction set offers for one number type.
#pragma once

#include "convolution.h"
#include "linear.h"
#include "lstm.h"
#include "softmax.h"
#include "training.h"

namespace {

template <class T>
constexpr Operations operations() {
  using V = typename T::Vectors;
  Operations found{V::kLanes, T::kGroup, T::kZero, run_lstm<T>, run_product<T>, activate<V>, run_peak<T>, {}};
  if constexpr (!T::kScaled)
    found.training = {kept_bytes<T>, run_forward<T>, run_backward<T>,    run_softmax<T>,
                      run_linear<T>, run_maxima<V>,  add_maxima_gradient};
  return found;
}

}  // namespace
