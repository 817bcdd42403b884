// A linear layer in training: y = x Wᵀ + b;   ∂x = ∂y W;   ∂W = ∂yᵀ x;   ∂b = Σ ∂y.
#pragma once

#include "blocks.h"

namespace {

// Rows whose inputs of one block stay in the second cache.
constexpr int64_t kRowsTogether = 192;

// to (rows, outputs) = A B + bias, for rows of numbers and a packed B.
template <class T>
bool multiply_chunks(const float* a, int64_t inputs, int64_t rows, const Packing<T>& b, const float* bias, float* to,
                     int64_t outputs) {
  using V = typename T::Vectors;
  const int64_t stride = row_length<T>(inputs);
  const Buffer<typename T::In> chunk(kRowsTogether * stride);
  const Buffer<float> result(kRowsTogether * b.panels * panel_width<T>());
  if (!chunk.get() || !result.get()) return false;
  for (int64_t first = 0; first < rows; first += kRowsTogether) {
    const int64_t some = smaller(kRowsTogether, rows - first);
    for (int64_t row = 0; row < some; row++)
      round_row<T>(a + (first + row) * inputs, inputs, chunk.get() + row * stride, stride);
    multiply_packed<T>(chunk.get(), stride, some, b, b.panels, result.get());
    for (int64_t row = 0; row < some; row++)
      for (int64_t k = 0; k < outputs; k += V::kLanes) {
        const int64_t count = smaller(V::kLanes, outputs - k);
        typename V::Floats y = V::load(in_result<T>(result.get(), some, row, k));
        if (bias) y = y + V::load(bias + k, count);
        V::store(to + (first + row) * outputs + k, y, count);
      }
  }
  return true;
}

template <class T>
bool linear_forward(const LinearRun& run) {
  const Packing<T> weight(run.inputs, run.outputs);
  return weight.complete() &&
         weight.by_outputs(rows_of<T>(run.weight, run.outputs, run.inputs, weight.steps * T::kGroup)) &&
         multiply_chunks<T>(run.x, run.inputs, run.rows, weight, run.bias, run.out, run.outputs);
}

template <class T>
bool linear_backward(const LinearRun& run) {
  using V = typename T::Vectors;
  using In = typename T::In;
  const Packing<T> weight(run.outputs, run.inputs);
  if (!weight.complete() ||
      !weight.by_inputs(rows_of<T>(run.weight, run.outputs, run.inputs, weight.panels * panel_width<T>())) ||
      !multiply_chunks<T>(run.grad_out, run.outputs, run.rows, weight, nullptr, run.grad_x, run.inputs))
    return false;
  const int64_t panels = weight.panels, length = panels * panel_width<T>(), stride = row_length<T>(run.rows);
  const int64_t grad_stride = row_length<T>(run.outputs);
  const Buffer<In> x(run.rows * length), grad(run.rows * grad_stride), by_output(run.outputs * stride);
  const Buffer<float> result(run.outputs * length);
  if (!x.get() || !grad.get() || !by_output.get() || !result.get()) return false;
  fill_zero(run.grad_bias, run.outputs);
  for (int64_t row = 0; row < run.rows; row++) {
    round_row<T>(run.x + row * run.inputs, run.inputs, x.get() + row * length, length);
    round_row<T>(run.grad_out + row * run.outputs, run.outputs, grad.get() + row * grad_stride, grad_stride);
    for (int64_t k = 0; k < run.outputs; k += V::kLanes) {
      const int64_t count = smaller(V::kLanes, run.outputs - k);
      const typename V::Floats more = V::load(run.grad_out + row * run.outputs + k, count);
      V::store(run.grad_bias + k, V::load(run.grad_bias + k, count) + more, count);
    }
  }
  transpose_inputs<T>(grad.get(), grad_stride, run.rows, run.outputs, by_output.get(), stride);
  if (!multiply_rows<T>(by_output.get(), stride, run.outputs, x.get(), length, run.rows, panels, result.get()))
    return false;
  for (int64_t row = 0; row < run.outputs; row++)
    for (int64_t k = 0; k < run.inputs; k += panel_width<T>())
      __builtin_memcpy(run.grad_weight + row * run.inputs + k, in_result<T>(result.get(), run.outputs, row, k),
                       static_cast<size_t>(smaller(panel_width<T>(), run.inputs - k)) * sizeof(float));
  return true;
}

template <class T>
bool run_linear(const LinearRun& run) {
  return run.grad_out ? linear_backward<T>(run) : linear_forward<T>(run);
}

}  // namespace
