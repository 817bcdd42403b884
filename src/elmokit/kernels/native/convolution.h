// The character convolution in training: the largest sum over all windows of a token, for every filter.
//
// There are few characters, so what each adds to each filter at each place of its window is a table, and
//     y_k = max over t of Σ_d table[d, id_(t+d)][k]
// The gradient of y_k goes to the rows of the window that was the largest, the first of equals.
#pragma once

#include "product.h"

namespace {

// Windows of a token that differ: one that lies in the padding stands for all such.
INLINE int64_t num_windows(const ConvolutionRun& run, int64_t token) {
  return smaller(run.length, run.used[token] + run.width) - run.width + 1;
}

INLINE const float* table_row(const ConvolutionRun& run, int64_t place, int64_t id) {
  return run.table + (place * run.characters + id) * run.filters;
}

template <class V>
void run_maxima(const ConvolutionRun& run) {
  using Floats = typename V::Floats;
  for (int64_t token = 0; token < run.tokens; token++) {
    const int64_t* ids = run.ids + token * run.length;
    const int64_t windows = num_windows(run, token);
    for (int64_t k = 0; k < run.filters; k += V::kLanes) {
      const int64_t count = smaller(V::kLanes, run.filters - k);
      Floats largest = V::set(-__builtin_inff()), best = V::set(0.0f);
      for (int64_t t = 0; t < windows; t++) {
        Floats sum = V::load(table_row(run, 0, ids[t]) + k, count);
        for (int64_t d = 1; d < run.width; d++) sum = sum + V::load(table_row(run, d, ids[t + d]) + k, count);
        best = V::if_above(sum, largest, V::set(static_cast<float>(t)), best);
        largest = V::max(sum, largest);
      }
      V::store(run.out + token * run.filters + k, largest, count);
      V::store(run.best + token * run.filters + k, best, count);
    }
  }
}

inline void add_maxima_gradient(const ConvolutionRun& run) {
  __builtin_memset(run.grad_table, 0, static_cast<size_t>(run.width * run.characters * run.filters) * sizeof(float));
  for (int64_t token = 0; token < run.tokens; token++) {
    const int64_t* ids = run.ids + token * run.length;
    for (int64_t k = 0; k < run.filters; k++) {
      const float grad = run.grad_out[token * run.filters + k];
      if (grad == 0.0f) continue;  // as many are, after relu
      const auto t = static_cast<int64_t>(run.best[token * run.filters + k]);
      for (int64_t d = 0; d < run.width; d++)
        run.grad_table[(d * run.characters + ids[t + d]) * run.filters + k] += grad;
    }
  }
}

}  // namespace
