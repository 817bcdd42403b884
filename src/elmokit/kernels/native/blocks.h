// Products for training, whose factors change with every step: packing, and products over many rows in blocks.
//
// Factors are rows of inputs (In), padded with zeros to whole panels. Results are kept by panels, (panels, rows, 4
// vectors), because every block of a long sum adds to them.
#pragma once

#include "product.h"

namespace {

// Steps of a block: 64 kB of packed numbers in a panel, so that with the rows of the other factor they fit in the
// second cache.
constexpr int64_t kBlockSteps = 256;

template <class T>
constexpr int64_t panel_width() {
  return 4 * T::Vectors::kLanes;
}

// The length of a row of `count` numbers: whole panels, and a cache line more, because rows that lie a power of two
// apart would use few sets of the cache.
template <class T>
INLINE int64_t row_length(int64_t count) {
  return round_up(count, panel_width<T>()) + 64 / static_cast<int64_t>(sizeof(typename T::In));
}

template <class Item>
INLINE void fill_zero(Item* to, int64_t count) {
  if (count > 0) __builtin_memset(to, 0, static_cast<size_t>(count) * sizeof(Item));
}

// Round numbers to inputs, then zeros up to `length`, a multiple of a vector.
template <class T>
INLINE void round_row(const float* x, int64_t count, typename T::In* to, int64_t length) {
  using V = typename T::Vectors;
  int64_t k = 0;
  for (; k + V::kLanes <= count; k += V::kLanes) T::store(to + k, V::load(x + k));
  if (k < count) {
    alignas(64) typename T::In last[V::kLanes];
    T::store(last, V::load(x + k, count - k));
    __builtin_memcpy(to + k, last, static_cast<size_t>(count - k) * sizeof(*last));
  }
  fill_zero(to + count, length - count);
}

// Rows (rows, count) to (count, rows), in squares that stay in the cache.
template <class Item>
void transpose(const Item* from, int64_t from_stride, int64_t rows, int64_t count, Item* to, int64_t to_stride) {
  constexpr int64_t kSquare = 32;
  for (int64_t row = 0; row < rows; row += kSquare)
    for (int64_t first = 0; first < count; first += kSquare) {
      const int64_t last_row = smaller(rows, row + kSquare), last = smaller(count, first + kSquare);
      for (int64_t k = first; k < last; k++)
        for (int64_t r = row; r < last_row; r++) to[k * to_stride + r] = from[r * from_stride + k];
    }
}

// The inputs of a product by columns: (rows, count) to (count, rows), with zeros up to a whole step.
template <class T>
void transpose_inputs(const typename T::In* from, int64_t from_stride, int64_t rows, int64_t count, typename T::In* to,
                      int64_t to_stride) {
  transpose(from, from_stride, rows, count, to, to_stride);
  for (int64_t k = 0; k < count; k++) fill_zero(to + k * to_stride + rows, round_up(rows, T::kGroup) - rows);
}

// Where the numbers of a row from `k` on lie in a result by panels.
template <class T>
INLINE float* in_result(float* result, int64_t rows, int64_t row, int64_t k) {
  return result + (k / panel_width<T>() * rows + row) * panel_width<T>() + k % panel_width<T>();
}

// A packed factor: [panels][steps][4 vectors][lanes][group], see `Matrix`.
template <class T>
class Packing {
 public:
  using V = typename T::Vectors;
  using In = typename T::In;
  static constexpr int64_t kWidth = 4 * V::kLanes, kStepBytes = 16 * V::kLanes;

  Packing(int64_t inputs, int64_t outputs)
      : steps(round_up(inputs, T::kGroup) / T::kGroup),
        panels(round_up(outputs, kWidth) / kWidth),
        memory_(panels * steps * kStepBytes) {}
  bool complete() const { return memory_.get() != nullptr; }
  char* panel(int64_t number) const { return memory_.get() + number * steps * kStepBytes; }

  // From rows of the inputs of each output: fill(place, row) writes the whole row of the output at that place.
  template <class Function>
  bool by_outputs(Function&& fill) const {
    const int64_t length = steps * T::kGroup + 64;
    Buffer<In> rows(kWidth * length);
    if (!rows.get()) return false;
    for (int64_t number = 0; number < panels; number++) {
      for (int64_t place = 0; place < kWidth; place++) fill(number * kWidth + place, rows.get() + place * length);
      char* to = panel(number);
      for (int64_t step = 0; step < steps; step++, to += kStepBytes)
        for (int64_t place = 0; place < kWidth; place++)
          __builtin_memcpy(to + place * 4, rows.get() + place * length + step * T::kGroup, 4);
    }
    return true;
  }

  // From the rows of each input: fill(input, row) writes its weights for all outputs.
  template <class Function>
  bool by_inputs(Function&& fill) const {
    const int64_t length = panels * kWidth;
    Buffer<In> rows(T::kGroup * length);
    if (!rows.get()) return false;
    for (int64_t step = 0; step < steps; step++) {
      for (int64_t k = 0; k < T::kGroup; k++) fill(step * T::kGroup + k, rows.get() + k * length);
      for (int64_t first = 0; first < length; first += V::kLanes) {
        const In* row = rows.get() + first;
        T::pack(panel(first / kWidth) + step * kStepBytes + first % kWidth * 4, row, row + (T::kGroup - 1) * length);
      }
    }
    return true;
  }

  int64_t steps, panels;

 private:
  Buffer<char> memory_;
};

// Packing::by_outputs or by_inputs from the rows of a matrix.
template <class T>
auto rows_of(const float* matrix, int64_t rows, int64_t count, int64_t length) {
  return [=](int64_t place, typename T::In* row) {
    if (place >= rows) return fill_zero(row, length);
    round_row<T>(matrix + place * count, count, row, length);
  };
}

// One panel of a factor whose rows are inputs: `count` rows, each with the outputs of the panel.
template <class T>
void pack_panel(const typename T::In* rows, int64_t stride, int64_t count, char* to) {
  using V = typename T::Vectors;
  alignas(64) const typename T::In zeros[V::kLanes] = {};
  for (int64_t k = 0; k < count; k += T::kGroup, rows += T::kGroup * stride) {
    const bool whole = k + T::kGroup <= count;
    UNROLLED (v, 4) {
      const typename T::In* row = rows + v * V::kLanes;
      T::pack(to, row, whole ? row + (T::kGroup - 1) * stride : zeros);
      to += 4 * V::kLanes;
    }
  }
}

// result[panel] = or += A B for some steps of one panel of B; rows of `result` are a panel wide.
template <class T>
INLINE void add_panel(const typename T::In* a, int64_t stride, int64_t rows, const char* packed, int64_t steps,
                      float* result, bool first) {
  using V = typename T::Vectors;
  for_rows<T::kRows>(rows, [&](auto number, int64_t row) {
    constexpr int M = decltype(number)::value;
    typename V::Floats sum[M][4];
    float* place = result + row * 4 * V::kLanes;
    UNROLLED (m, M)
      UNROLLED (v, 4) sum[m][v] = first ? V::set(0.0f) : V::load(place + (m * 4 + v) * V::kLanes);
    multiply<T, M>(sum, a + row * stride, stride, packed, steps);
    UNROLLED (m, M)
      UNROLLED (v, 4) V::store(place + (m * 4 + v) * V::kLanes, sum[m][v]);
  });
}

// result (panels, rows, panel) = A B, B packed.
template <class T>
void multiply_packed(const typename T::In* a, int64_t stride, int64_t rows, const Packing<T>& b, int64_t panels,
                     float* result) {
  for (int64_t step = 0; step < b.steps; step += kBlockSteps) {
    const int64_t steps = smaller(kBlockSteps, b.steps - step);
    for (int64_t panel = 0; panel < panels; panel++)
      add_panel<T>(a + step * T::kGroup, stride, rows, b.panel(panel) + step * Packing<T>::kStepBytes, steps,
                   result + panel * rows * panel_width<T>(), step == 0);
  }
}

// result (panels, rows, panel) = or += A B for A (rows, count) and B (count, outputs) in rows, packed block by block.
template <class T>
bool multiply_rows(const typename T::In* a, int64_t a_stride, int64_t rows, const typename T::In* b, int64_t b_stride,
                   int64_t count, int64_t panels, float* result, bool first = true) {
  const Buffer<char> packed(kBlockSteps * Packing<T>::kStepBytes);
  if (!packed.get()) return false;
  constexpr int64_t kBlock = kBlockSteps * T::kGroup;
  for (int64_t k = 0; k < count; k += kBlock) {
    const int64_t some = smaller(kBlock, count - k), steps = round_up(some, T::kGroup) / T::kGroup;
    for (int64_t panel = 0; panel < panels; panel++) {
      pack_panel<T>(b + k * b_stride + panel * panel_width<T>(), b_stride, some, packed.get());
      add_panel<T>(a + k, a_stride, rows, packed.get(), steps, result + panel * rows * panel_width<T>(),
                   first && k == 0);
    }
  }
  return true;
}

}  // namespace
