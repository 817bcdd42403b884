// The recurrent loop of an LSTM over packed batches, for any vectors and numbers.
//
//     z = W_x x + W_h h + b,   z = [i, f, j, o]
//     c ← clip(σ(f) · c + σ(i) · tanh(j), ± cell clip)
//     h = clip(W_p (σ(o) · tanh(c)), ± output clip),   or σ(o) · tanh(c) without projection
//
// Gates and cell state are computed where the products end, in registers. All numbers but the factors of the products
// are float32. No sum depends on the number of rows, so a sentence's numbers are the same to the bit in any batch.
#pragma once

#include "product.h"

namespace {

// Steps of fewer rows than this take W_x x from a product over many steps; the others compute it at once.
constexpr int64_t kFewRows = 8, kRowsAhead = 64;

template <class V>
INLINE typename V::Floats clip(typename V::Floats x, float limit) {
  return V::min(V::set(limit), V::max(V::set(-limit), x));
}

// The gates of a row, from z as `kGateFactors` makes it. With I = e⁻ⁱ, F = e⁻ᶠ, J = e⁻²ʲ, O = e⁻ᵒ, C = e⁻²ᶜ, all at
// most 2³⁰, quotients are put together, so that two divisions are enough:
//     σ(f) · c + σ(i) · tanh(j) = (c (1 + I) (1 + J) + (1 - J) (1 + F)) / ((1 + I) (1 + J) (1 + F))
//     σ(o) · tanh(c) = (1 - C) / ((1 + O) (1 + C))
// First all rows of a block update their cells, then all give their outputs: the CPU works on several rows at a time.
template <class T, class V = typename T::Vectors>
INLINE void update_cell(typename V::Floats (&z)[4], float* cell, float limit) {
  constexpr int kDegree = T::kExp2Degree;
  const typename V::Floats one = V::set(1.0f), j = exp2<V, kDegree>(z[2]);
  const typename V::Floats i = one + exp2<V, kDegree>(z[0]), f = one + exp2<V, kDegree>(z[1]);
  const typename V::Floats both = i * (one + j);
  z[0] = clip<V>(V::multiply_add(V::load(cell), both, (one - j) * f) / (both * f), limit);
  z[3] = one + exp2<V, kDegree>(z[3]);
  V::store(cell, z[0]);
}

// σ(o) · tanh(c), from what `update_cell` left in z: c and 1 + O.
template <class T, class V = typename T::Vectors>
INLINE typename V::Floats gate_output(const typename V::Floats (&z)[4]) {
  const typename V::Floats one = V::set(1.0f), e = exp2<V, T::kExp2Degree>(z[0] * V::set(-2 * kLog2e));
  return (one - e) / (z[3] * (one + e));
}

// The memory of one call.
template <class T>
struct Space {
  using V = typename T::Vectors;
  using In = typename T::In;
  static constexpr bool kAsTheyAre = sizeof(In) == sizeof(float);
  Space(const Lstm& lstm, const Run& run)
      : width(round_up(lstm.outputs, 4 * V::kLanes)),
        groups(round_up(lstm.cells, V::kLanes) / V::kLanes),
        memory_stride(groups * V::kLanes + 64 / static_cast<int64_t>(sizeof(In))),
        first(run.rows * width),
        second(run.rows * width),
        start(run.batch * width),
        cell(run.batch * groups * V::kLanes),
        memory(run.batch * memory_stride),
        x(kAsTheyAre ? 0 : run.rows * width),
        h(kAsTheyAre ? 0 : run.batch * width),
        x_scale(run.rows),
        h_scale(run.batch),
        memory_scale(run.batch),
        ahead(smaller(run.rows, kRowsAhead + kFewRows) * groups * 4 * V::kLanes) {}
  bool complete() const {
    return first.get() && second.get() && start.get() && cell.get() && memory.get() && x.get() && h.get() &&
           x_scale.get() && h_scale.get() && memory_scale.get() && ahead.get();
  }
  int64_t width;                // numbers of a row of x or h, padded
  int64_t groups;               // N / lanes
  int64_t memory_stride;        // not a power of two, which would use few sets of the cache
  Buffer<float> first, second;  // (S, P) input and output of a layer, in packed order
  Buffer<float> start;          // (B, P) hidden at the start
  Buffer<float> cell;           // (groups, B, lanes)
  Buffer<In> memory;            // (B, N) σ(o) · tanh(c)
  Buffer<In> x, h;              // (S, P), (B, P) as inputs of products
  Buffer<float> x_scale, h_scale, memory_scale;
  Buffer<float> ahead;  // (rows, groups, 4, lanes) W_x x + b of some steps
};

// One step of a layer.
template <class T>
struct Step {
  const Lstm& lstm;
  const Layer& layer;
  const Space<T>& space;
  int64_t batch, rows;  // sentences, and those that still run
  Inputs<T> x, h;
  bool has_hidden;
  const float* ahead;  // W_x x + b, or null
  float* out;          // (b, P)
};

// Fetch the share of `rows` of a step's weights of the next group: all rows of a step together fetch all of them.
INLINE void fetch_ahead(const Matrix& w, int64_t bytes, int64_t group, int64_t row, int64_t rows, int64_t all) {
  const char* next = w.weights + (group + 1) * bytes;
  const int64_t end = smaller(row + rows, all) * bytes / all;
  for (int64_t at = row * bytes / all / 64 * 64; at < end; at += 64) _mm_prefetch(next + at, _MM_HINT_T0);
}

// W_x x + W_h h + b, gates, and σ(o) · tanh(c) for M rows of one group of cells; `kBoth`: the two products at once.
template <class T, int M, bool kBoth>
__attribute__((noinline)) void gate_block(const Step<T>& step, int64_t group, int64_t row) {
  using V = typename T::Vectors;
  const Space<T>& space = step.space;
  const Matrix &input = step.layer.input, &state = step.layer.state;
  typename V::Floats z[M][4];
  if (step.ahead) {
    UNROLLED (m, M)
      UNROLLED (v, 4) z[m][v] = V::load(step.ahead + (((row + m) * space.groups + group) * 4 + v) * V::kLanes);
  } else {
    start_from_bias<V, M>(input, group, z);
  }
  if constexpr (kBoth) {
    const int64_t bytes = input.steps * 16 * V::kLanes;
    fetch_ahead(input, bytes, group, row, M, step.rows);
    fetch_ahead(state, bytes, group, row, M, step.rows);
    add_both_products<T, M>(input, step.x.from(row), state, step.h.from(row), group, z);
  } else {
    if (!step.ahead) add_product<T, M>(input, group, step.x.from(row), z);
    if (step.has_hidden) add_product<T, M>(state, group, step.h.from(row), z);
  }
  // Read before the first store of bytes, after which the compiler would read all of it again.
  const float limit = step.lstm.cell_clip;
  const bool projected = step.layer.projection.outputs > 0;
  const int64_t stride = projected ? space.memory_stride : space.width;
  float* cell = space.cell.get() + (group * step.batch + row) * V::kLanes;
  float* plain = step.out + row * stride + group * V::kLanes;
  typename T::In* memory = space.memory.get() + row * stride + group * V::kLanes;
  UNROLLED (m, M) update_cell<T>(z[m], cell + m * V::kLanes, limit);
  UNROLLED (m, M) {
    const typename V::Floats y = gate_output<T>(z[m]);
    if (projected) {
      T::store(memory + m * stride, y * V::set(1.0f / T::kUnit));
    } else {
      V::store(plain + m * stride, y);
    }
  }
}

template <class T>
void run_step(const Step<T>& step) {
  using V = typename T::Vectors;
  const Space<T>& space = step.space;
  const int64_t rows = step.rows;
  for (int64_t group = 0; group < space.groups; group++) {
    if constexpr (T::kBothRows > 0) {
      if (!step.ahead && step.has_hidden) {
        for_rows<T::kBothRows>(
            rows, [&](auto number, int64_t row) { gate_block<T, decltype(number)::value, true>(step, group, row); });
        continue;
      }
    }
    for_rows<T::kRows>(
        rows, [&](auto number, int64_t row) { gate_block<T, decltype(number)::value, false>(step, group, row); });
  }
  if (step.layer.projection.outputs == 0) return;
  if constexpr (T::kScaled) {  // NaN in the inputs of a row makes the whole row NaN
    for (int64_t row = 0; row < rows; row++) {
      const float poison = 0.0f * (step.x.scale[row] + (step.has_hidden ? step.h.scale[row] : 0.0f));
      space.memory_scale.get()[row] = T::kUnit + poison;
    }
  }
  const Inputs<T> memory{space.memory.get(), space.memory_stride, space.memory_scale.get()};
  for_products<T>(step.layer.projection, memory, rows, [&](auto number, int64_t panel, int64_t row, auto& z) {
    UNROLLED (m, decltype(number)::value)
      UNROLLED (v, 4)
        V::store(step.out + (row + m) * space.width + (panel * 4 + v) * V::kLanes,
                 clip<V>(z[m][v], step.lstm.output_clip));
  });
}

// Hidden rows as the inputs of the next step.
template <class T>
INLINE Inputs<T> as_inputs(const Matrix& w, const float* rows, int64_t count, const Space<T>& space, int64_t dim) {
  if constexpr (Space<T>::kAsTheyAre) {
    (void)count, (void)dim;
    return {rows, space.width, nullptr};
  } else {
    for (int64_t row = 0; row < count; row++)
      convert_row<T>(w, rows + row * space.width, dim, space.h.get() + row * space.width, space.h_scale.get() + row);
    return {space.h.get(), space.width, space.h_scale.get()};
  }
}

// W_x x + b of some rows from `begin` on, into `space.ahead`.
template <class T>
void look_ahead(const Layer& layer, const Space<T>& space, const Inputs<T>& x, int64_t rows) {
  using V = typename T::Vectors;
  for (int64_t group = 0; group < space.groups; group++) {
    for_rows<T::kRows>(rows, [&](auto number, int64_t row) {
      constexpr int M = decltype(number)::value;
      typename V::Floats z[M][4];
      start_from_bias<V, M>(layer.input, group, z);
      add_product<T, M>(layer.input, group, x.from(row), z);
      UNROLLED (m, M)
        UNROLLED (v, 4) V::store(space.ahead.get() + (((row + m) * space.groups + group) * 4 + v) * V::kLanes, z[m][v]);
    });
  }
}

// Copy rows of numbers between the caller's memory and padded rows; padding becomes zero.
INLINE void copy_row(const float* from, int64_t count, float* to, int64_t width) {
  __builtin_memcpy(to, from, static_cast<size_t>(count) * sizeof(float));
  if (width > count) __builtin_memset(to + count, 0, static_cast<size_t>(width - count) * sizeof(float));
}

template <class V>
void load_cells(const float* from, int64_t batch, int64_t cells, float* to) {
  for (int64_t first = 0; first < cells; first += V::kLanes, to += batch * V::kLanes)
    for (int64_t row = 0; row < batch; row++)
      V::store(to + row * V::kLanes,
               from ? V::load(from + row * cells + first, smaller(cells - first, V::kLanes)) : V::set(0.0f));
}

template <class V>
void store_cells(const float* from, int64_t batch, int64_t cells, float* to) {
  for (int64_t first = 0; first < cells; first += V::kLanes, from += batch * V::kLanes)
    for (int64_t row = 0; row < batch; row++)
      V::store(to + row * cells + first, V::load(from + row * V::kLanes), smaller(cells - first, V::kLanes));
}

// One layer: from rows `x` to rows `out`, both in packed order.
template <class T>
void run_layer(const Lstm& lstm, const Run& run, int64_t number, const Space<T>& space, const float* x, float* out) {
  using V = typename T::Vectors;
  const Layer& layer = lstm.layer[number];
  const int64_t dim = lstm.outputs;
  load_cells<V>(run.cell ? run.cell + number * run.cell_stride : nullptr, run.batch, lstm.cells, space.cell.get());
  const float* hidden = nullptr;
  if (run.hidden) {
    hidden = space.start.get();
    for (int64_t row = 0; row < run.batch; row++)
      copy_row(run.hidden + number * run.hidden_stride + row * dim, dim, space.start.get() + row * space.width,
               space.width);
    if constexpr (T::kScaled) {  // NaN in a cell would be lost: it makes the whole row NaN
      for (int64_t row = 0; run.cell && row < run.batch; row++)
        for (int64_t k = 0; k < lstm.cells; k++)
          space.start.get()[row * space.width] += 0.0f * run.cell[number * run.cell_stride + row * lstm.cells + k];
    }
  }
  Inputs<T> inputs{nullptr, space.width, space.x_scale.get()};
  if constexpr (Space<T>::kAsTheyAre) {
    inputs.rows = x;
  } else {
    for (int64_t row = 0; row < run.rows; row++)
      convert_row<T>(layer.input, x + row * space.width, dim, space.x.get() + row * space.width,
                     space.x_scale.get() + row);
    inputs.rows = space.x.get();
  }
  float* end_hidden = run.end_hidden ? run.end_hidden + number * run.hidden_stride : nullptr;
  int64_t begin = 0, ahead_begin = 0, ahead_end = 0, before = run.batch;
  for (int64_t t = 0; t <= run.steps; t++) {
    const int64_t rows = t < run.steps ? run.sizes[t] : 0;
    for (int64_t row = rows; end_hidden && row < before; row++) {  // sentences that have ended
      if (hidden)
        copy_row(hidden + row * space.width, dim, end_hidden + row * dim, dim);
      else
        __builtin_memset(end_hidden + row * dim, 0, static_cast<size_t>(dim) * sizeof(float));
    }
    if (rows == 0) break;
    Step<T> step{lstm,    layer,
                 space,   run.batch,
                 rows,    inputs.from(begin),
                 {},      hidden != nullptr,
                 nullptr, out + begin * space.width};
    if (hidden) step.h = as_inputs<T>(layer.state, hidden, rows, space, dim);
    if (rows < kFewRows) {
      if (begin >= ahead_end) {
        ahead_begin = ahead_end = begin;
        for (int64_t u = t; u < run.steps && ahead_end - begin < kRowsAhead; u++) ahead_end += run.sizes[u];
        look_ahead<T>(layer, space, inputs.from(begin), ahead_end - begin);
      }
      step.ahead = space.ahead.get() + (begin - ahead_begin) * space.groups * 4 * V::kLanes;
    }
    run_step<T>(step);
    hidden = step.out;
    before = rows;
    begin += rows;
  }
  if (run.end_cell) store_cells<V>(space.cell.get(), run.batch, lstm.cells, run.end_cell + number * run.cell_stride);
}

template <class T>
bool run_lstm(const Lstm& lstm, const Run& run) {
  using V = typename T::Vectors;
  const Space<T> space(lstm, run);
  if (!space.complete()) return false;
  float *x = space.first.get(), *out = space.second.get();
  for (int64_t row = 0; row < run.rows; row++)
    copy_row(run.x + run.index[row] * lstm.outputs, lstm.outputs, x + row * space.width, space.width);
  for (int64_t number = 0; number < lstm.layers; number++) {
    run_layer<T>(lstm, run, number, space, x, out);
    if (lstm.skip && number > 0) {
      for (int64_t k = 0; k < run.rows * space.width; k += V::kLanes)
        V::store(out + k, V::load(out + k) + V::load(x + k));
    }
    for (int64_t row = 0; row < run.rows; row++)
      copy_row(out + row * space.width, lstm.outputs,
               run.out + number * run.layer_stride + run.index[row] * run.row_stride, lstm.outputs);
    float* used = x;
    x = out;
    out = used;
  }
  return true;
}

}  // namespace
