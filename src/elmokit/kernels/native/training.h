// One layer of an LSTM in training, forward and backward, for any vectors and numbers.
//
// Forward, for each step: z = [x, h] Wᵀ + b with W = [W_x, W_h], then
//     i, f, o = σ(z_i), σ(z_f), σ(z_o);   j = tanh(z_j);   c = clip(f · c₋ + i · j);   m = o · tanh(c)
//     h = clip(m W_pᵀ),   or m without projection
// Backward, from the last step to the first, with ∂ for the gradient of the loss:
//     ∂m = ∂h W_p, ∂h being zero where h was clipped
//     ∂c += ∂m · o · (1 - tanh²(c)), zero where c was clipped
//     ∂z_i = ∂c · j · i (1 - i);   ∂z_f = ∂c · c₋ · f (1 - f);   ∂z_j = ∂c · i · (1 - j²);   ∂z_o = ∂m · tanh(c) · o (1
//     - o) ∂c₋ = ∂c · f;   [∂x, ∂h₋] = ∂z W
// and over all steps: ∂W = Σ ∂zᵀ [x, h];   ∂W_p = Σ ∂hᵀ m;   ∂b = Σ ∂z.
// Factors of the products are rounded to the number type; all else, and all sums, are float32.
#pragma once

#include "blocks.h"
#include "lstm.h"

namespace {

// The lengths of the rows that forward leaves for backward, padded with zeros.
template <class T>
struct KeptSizes {
  explicit KeptSizes(const TrainingRun& run)
      : width(round_up(run.cells, panel_width<T>())),
        gate_stride(4 * width + 16),
        input_stride(row_length<T>(run.inputs + run.outputs)),
        memory_stride(run.projection ? row_length<T>(run.cells) : 0) {}
  int64_t row_bytes() const {
    return (gate_stride + width) * 4 + (input_stride + memory_stride) * static_cast<int64_t>(sizeof(typename T::In));
  }
  int64_t width, gate_stride, input_stride, memory_stride;  // width: of the cells
};

// What forward leaves for backward, in the caller's memory.
template <class T>
struct Kept : KeptSizes<T> {
  using V = typename T::Vectors;
  using In = typename T::In;
  Kept(const TrainingRun& run, char* memory)
      : KeptSizes<T>(run),
        gates(reinterpret_cast<float*>(memory)),
        cells(gates + run.rows * this->gate_stride),
        inputs(reinterpret_cast<In*>(cells + run.rows * this->width)),
        memories(inputs + run.rows * this->input_stride) {}
  int64_t gradient_stride() const { return this->gate_stride * 4 / static_cast<int64_t>(sizeof(In)); }
  In* gradients(int64_t row) const { return reinterpret_cast<In*>(gates + row * this->gate_stride); }
  float* gates;  // (S, groups, 4, lanes) i, f, j, o; backward puts ∂z there, as inputs, from the left
  float* cells;  // (S, N)
  In* inputs;    // (S, D + P) x and the state before it
  In* memories;  // (S, N) m
};

template <class T>
int64_t kept_bytes(const TrainingRun& run) {
  return run.rows * KeptSizes<T>(run).row_bytes();
}

// Where row b of a step finds the cell before it, and whether that counts.
struct Before {
  const float* cells;  // (b, stride) or null for zero
  int64_t stride;
  const float* keep;  // (b) or null
  INLINE float kept(int64_t row) const { return keep ? keep[row] : 1.0f; }
};

template <class T>
Before before_step(const TrainingRun& run, const Kept<T>& kept, int64_t number, int64_t begin) {
  const float* keep = run.keep ? run.keep + begin : nullptr;
  if (number == 0) return {run.cell, run.cells, keep};
  return {kept.cells + (begin - run.sizes[number - 1]) * kept.width, kept.width, keep};
}

// [W_x, W_h] by outputs, with the four gates of the same cells in a panel; null if memory runs out.
template <class T>
bool pack_gates(const TrainingRun& run, const Packing<T>& to) {
  constexpr int64_t kLanes = T::Vectors::kLanes;
  return to.by_outputs([&](int64_t place, typename T::In* row) {
    const int64_t gate = place / kLanes % 4, cell = place / (4 * kLanes) * kLanes + place % kLanes;
    const int64_t from = gate * run.cells + cell, length = to.steps * T::kGroup;
    if (cell >= run.cells) return fill_zero(row, length);
    round_row<T>(run.input_weight + from * run.inputs, run.inputs, row, run.inputs);
    round_row<T>(run.state_weight + from * run.outputs, run.outputs, row + run.inputs, length - run.inputs);
  });
}

template <class T, int M>
INLINE void close_gates(const TrainingRun& run, const Kept<T>& kept, const Before& before, int64_t group, int64_t begin,
                        int64_t row, const typename T::Vectors::Floats (&z)[M][4]) {
  using V = typename T::Vectors;
  const typename V::Floats one = V::set(1.0f);
  const int64_t left = smaller(V::kLanes, run.cells - group * V::kLanes);
  UNROLLED (m, M) {
    const int64_t place = begin + row + m;
    float* gates = kept.gates + place * kept.gate_stride + group * 4 * V::kLanes;
    const typename V::Floats i = one / (one + exp_minus<V>(z[m][0])), f = one / (one + exp_minus<V>(z[m][1]));
    const typename V::Floats e = exp_minus_twice<V>(z[m][2]), o = one / (one + exp_minus<V>(z[m][3]));
    const typename V::Floats j = (one - e) / (one + e);
    typename V::Floats c = i * j;
    if (before.cells && left > 0) {
      const float* from = before.cells + (row + m) * before.stride + group * V::kLanes;
      c = V::multiply_add(f, V::load(from, left) * V::set(before.kept(row + m)), c);
    }
    c = clip<V>(c, run.cell_clip);
    V::stream(gates, i);  // not needed before backward
    V::stream(gates + V::kLanes, f);
    V::stream(gates + 2 * V::kLanes, j);
    V::stream(gates + 3 * V::kLanes, o);
    V::store(kept.cells + place * kept.width + group * V::kLanes, c);
    const typename V::Floats memory = o * activated<V>(c, kTanh);
    if (run.projection) {
      T::store(kept.memories + place * kept.memory_stride + group * V::kLanes, memory);
    } else if (left > 0) {
      V::store(run.out + place * run.outputs + group * V::kLanes, memory, left);
    }
  }
}

template <class T>
void forward_step(const TrainingRun& run, const Kept<T>& kept, const Packing<T>& weights, const float* bias,
                  const Before& before, int64_t begin, int64_t rows, bool has_hidden) {
  using V = typename T::Vectors;
  const typename T::In* inputs = kept.inputs + begin * kept.input_stride;
  // Without a state the inputs after x are zero: the last step may hold the first of them.
  const int64_t steps = has_hidden ? weights.steps : round_up(run.inputs, T::kGroup) / T::kGroup;
  for (int64_t group = 0; group < weights.panels; group++) {
    for_rows<T::kRows>(rows, [&](auto number, int64_t row) {
      constexpr int M = decltype(number)::value;
      typename V::Floats z[M][4];
      UNROLLED (m, M)
        UNROLLED (v, 4) z[m][v] = V::load(bias + (group * 4 + v) * V::kLanes);
      multiply<T, M>(z, inputs + row * kept.input_stride, kept.input_stride, weights.panel(group), steps);
      close_gates<T, M>(run, kept, before, group, begin, row, z);
    });
  }
}

template <class T>
void project_step(const TrainingRun& run, const Kept<T>& kept, const Packing<T>& weights, int64_t begin, int64_t rows,
                  float* result) {
  using V = typename T::Vectors;
  multiply_packed<T>(kept.memories + begin * kept.memory_stride, kept.memory_stride, rows, weights, weights.panels,
                     result);
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < run.outputs; k += V::kLanes) {
      const typename V::Floats h = V::load(in_result<T>(result, rows, row, k));
      V::store(run.out + (begin + row) * run.outputs + k, clip<V>(h, run.output_clip),
               smaller(V::kLanes, run.outputs - k));
    }
}

// The four gates of the cells [groups][4][lanes], from four rows of N.
template <class V>
void by_groups(const float* from, int64_t cells, int64_t groups, float* to) {
  for (int64_t group = 0; group < groups; group++)
    UNROLLED (gate, 4) {
      const int64_t count = smaller(V::kLanes, cells - group * V::kLanes);
      V::store(to + (group * 4 + gate) * V::kLanes,
               count > 0 ? V::load(from + gate * cells + group * V::kLanes, count) : V::set(0.0f));
    }
}

// Rows of h, in `from`, as inputs of the step at `begin`; rows whose state is set to zero become zero.
template <class T>
void set_state(const TrainingRun& run, const Kept<T>& kept, const float* from, int64_t begin, int64_t rows) {
  for (int64_t row = 0; row < rows; row++) {
    typename T::In* to = kept.inputs + (begin + row) * kept.input_stride + run.inputs;
    const int64_t length = kept.input_stride - run.inputs;
    if (!from || (run.keep && run.keep[begin + row] == 0.0f)) {
      fill_zero(to, length);
    } else {
      round_row<T>(from + row * run.outputs, run.outputs, to, length);
    }
  }
}

template <class T>
bool run_forward(const TrainingRun& run) {
  using V = typename T::Vectors;
  const Kept<T> kept(run, run.kept);
  const int64_t groups = kept.width / V::kLanes, batch = run.sizes[0];
  const Packing<T> weights(run.inputs + run.outputs, 4 * kept.width);
  const Packing<T> projection(run.cells, run.projection ? run.outputs : 0);
  const Buffer<float> bias(4 * kept.width), result(batch * round_up(run.outputs, panel_width<T>()));
  if (!weights.complete() || !projection.complete() || !bias.get() || !result.get()) return false;
  by_groups<V>(run.bias, run.cells, groups, bias.get());
  if (!pack_gates<T>(run, weights)) return false;
  if (!projection.by_outputs(rows_of<T>(run.projection, run.outputs, run.cells, projection.steps * T::kGroup)))
    return false;
  for (int64_t row = 0; row < run.rows; row++)
    round_row<T>(run.x + row * run.inputs, run.inputs, kept.inputs + row * kept.input_stride, run.inputs);
  const float* hidden = run.hidden;
  for (int64_t t = 0, begin = 0; t < run.steps; begin += run.sizes[t], t++) {
    const int64_t rows = run.sizes[t];
    set_state<T>(run, kept, hidden, begin, rows);
    forward_step<T>(run, kept, weights, bias.get(), before_step(run, kept, t, begin), begin, rows, hidden != nullptr);
    if (run.projection) project_step<T>(run, kept, projection, begin, rows, result.get());
    hidden = run.out + begin * run.outputs;
  }
  _mm_sfence();  // another thread may go backward
  const int64_t last = run.sizes[run.steps - 1];
  for (int64_t row = 0; row < last; row++)
    __builtin_memcpy(run.end_cell + row * run.cells, kept.cells + (run.rows - last + row) * kept.width,
                     static_cast<size_t>(run.cells) * sizeof(float));
  return true;
}

// The memory of backward, and its packed weights.
template <class T>
struct BackSpace {
  BackSpace(const TrainingRun& run, const Kept<T>& kept)
      : hidden_stride(row_length<T>(run.outputs)),
        input_weight(4 * kept.width, run.inputs),
        state_weight(4 * kept.width, run.outputs),
        projection(run.projection ? run.outputs : 0, kept.width),
        hidden(run.sizes[0] * hidden_stride),
        hidden_inputs(run.projection ? run.rows * hidden_stride : 0),
        cell(run.sizes[0] * kept.width),
        bias(4 * kept.width),
        of_x(run.sizes[0] * input_weight.panels * panel_width<T>()),
        of_state(run.sizes[0] * state_weight.panels * panel_width<T>()) {}
  bool complete() const {
    return input_weight.complete() && state_weight.complete() && projection.complete() && hidden.get() &&
           hidden_inputs.get() && cell.get() && bias.get() && of_x.get() && of_state.get();
  }
  int64_t hidden_stride;
  Packing<T> input_weight, state_weight, projection;
  Buffer<float> hidden;                  // (B, P) ∂h of a step
  Buffer<typename T::In> hidden_inputs;  // (S, P) the same of all steps, as inputs
  Buffer<float> cell;                    // (B, N) ∂c
  Buffer<float> bias;                    // (groups, 4, lanes) ∂b
  Buffer<float> of_x, of_state;          // ∂z W of a step, by panels
};

template <class T>
bool pack_back(const TrainingRun& run, const Kept<T>& kept, const BackSpace<T>& space) {
  constexpr int64_t kLanes = T::Vectors::kLanes;
  const auto by_gates = [&](const float* weight, int64_t count, const Packing<T>& to) {
    return to.by_inputs([&](int64_t place, typename T::In* row) {  // in the order of ∂z
      const int64_t gate = place / kLanes % 4, cell = place / (4 * kLanes) * kLanes + place % kLanes;
      const int64_t length = to.panels * panel_width<T>();
      if (cell >= run.cells) return fill_zero(row, length);
      round_row<T>(weight + (gate * run.cells + cell) * count, count, row, length);
    });
  };
  return by_gates(run.input_weight, run.inputs, space.input_weight) &&
         by_gates(run.state_weight, run.outputs, space.state_weight) &&
         (!run.projection ||
          space.projection.by_inputs(rows_of<T>(run.projection, run.outputs, run.cells, kept.width)));
}

// ∂h of a step: what comes from above, and from the `later` rows of the next step.
template <class T>
void gather_hidden(const TrainingRun& run, const BackSpace<T>& space, int64_t begin, int64_t rows, int64_t later) {
  using V = typename T::Vectors;
  for (int64_t row = 0; row < rows; row++) {
    const int64_t place = begin + row;
    float* to = space.hidden.get() + row * space.hidden_stride;
    const bool goes_on = row < later && !(run.keep && run.keep[begin + rows + row] == 0.0f);
    for (int64_t k = 0; k < run.outputs; k += V::kLanes) {
      const int64_t count = smaller(V::kLanes, run.outputs - k);
      typename V::Floats grad = V::load(run.grad_out + place * run.outputs + k, count);
      if (goes_on) grad = grad + V::load(in_result<T>(space.of_state.get(), later, row, k));
      if (run.projection) grad = V::if_below(grad, V::load(run.out + place * run.outputs + k, count), run.output_clip);
      V::store(to + k, grad);
    }
    fill_zero(to + round_up(run.outputs, V::kLanes), space.hidden_stride - round_up(run.outputs, V::kLanes));
    if (run.projection)
      round_row<T>(to, run.outputs, space.hidden_inputs.get() + place * space.hidden_stride, space.hidden_stride);
  }
}

// From ∂m of M rows and one panel of cells to ∂z and to ∂c of the cells before.
template <class T, int M>
INLINE void open_gates(const TrainingRun& run, const Kept<T>& kept, const BackSpace<T>& space, const Before& before,
                       int64_t panel, int64_t begin, int64_t row, const typename T::Vectors::Floats (&memory)[M][4]) {
  using V = typename T::Vectors;
  using Floats = typename V::Floats;
  const Floats one = V::set(1.0f);
  for (int64_t v = 0; v < 4; v++) {
    const int64_t group = panel * 4 + v, left = smaller(V::kLanes, run.cells - group * V::kLanes);
    Floats sum[4] = {V::set(0.0f), V::set(0.0f), V::set(0.0f), V::set(0.0f)};
    UNROLLED (m, M) {
      const int64_t place = begin + row + m;
      const float* gates = kept.gates + place * kept.gate_stride + group * 4 * V::kLanes;
      const Floats i = V::load(gates), f = V::load(gates + V::kLanes);
      const Floats j = V::load(gates + 2 * V::kLanes), o = V::load(gates + 3 * V::kLanes);
      const Floats cell = V::load(kept.cells + place * kept.width + group * V::kLanes);
      const Floats tanh = activated<V>(cell, kTanh), keep = V::set(before.kept(row + m));
      float* later = space.cell.get() + (row + m) * kept.width + group * V::kLanes;
      Floats grad = V::multiply_add(memory[m][v] * o, one - tanh * tanh, V::load(later));
      grad = V::if_below(grad, cell, run.cell_clip);
      V::store(later, grad * f * keep);
      Floats z[4] = {grad * j * (i * (one - i)), V::set(0.0f), grad * i * (one - j * j),
                     memory[m][v] * tanh * (o * (one - o))};
      if (before.cells && left > 0) {
        const float* from = before.cells + (row + m) * before.stride + group * V::kLanes;
        z[1] = grad * keep * V::load(from, left) * (f * (one - f));
      }
      typename T::In* to = kept.gradients(place) + group * 4 * V::kLanes;
      UNROLLED (gate, 4) {
        T::store(to + gate * V::kLanes, z[gate]);
        sum[gate] = sum[gate] + z[gate];
      }
    }
    float* bias = space.bias.get() + group * 4 * V::kLanes;
    UNROLLED (gate, 4) V::store(bias + gate * V::kLanes, V::load(bias + gate * V::kLanes) + sum[gate]);
  }
}

template <class T>
void backward_step(const TrainingRun& run, const Kept<T>& kept, const BackSpace<T>& space, const Before& before,
                   int64_t begin, int64_t rows) {
  using V = typename T::Vectors;
  for (int64_t panel = 0; panel < kept.width / panel_width<T>(); panel++) {
    for_rows<T::kRows>(rows, [&](auto number, int64_t row) {
      constexpr int M = decltype(number)::value;
      typename V::Floats memory[M][4];  // ∂m
      const float* plain = space.hidden.get() + row * space.hidden_stride + panel * panel_width<T>();
      UNROLLED (m, M)
        UNROLLED (v, 4)
          memory[m][v] = run.projection ? V::set(0.0f) : V::load(plain + m * space.hidden_stride + v * V::kLanes);
      if (run.projection)
        multiply<T, M>(memory, space.hidden_inputs.get() + (begin + row) * space.hidden_stride, space.hidden_stride,
                       space.projection.panel(panel), space.projection.steps);
      open_gates<T, M>(run, kept, space, before, panel, begin, row, memory);
    });
  }
  const typename T::In* gradients = kept.gradients(begin);
  multiply_packed<T>(gradients, kept.gradient_stride(), rows, space.input_weight, space.input_weight.panels,
                     space.of_x.get());
  for (int64_t row = 0; row < rows; row++)
    for (int64_t k = 0; k < run.inputs; k += V::kLanes)
      V::store(run.grad_x + (begin + row) * run.inputs + k, V::load(in_result<T>(space.of_x.get(), rows, row, k)),
               smaller(V::kLanes, run.inputs - k));
  if (begin > 0)
    multiply_packed<T>(gradients, kept.gradient_stride(), rows, space.state_weight, space.state_weight.panels,
                       space.of_state.get());
}

// ∂W_x, ∂W_h and ∂b, from ∂z of all steps.
template <class T>
bool gate_weights(const TrainingRun& run, const Kept<T>& kept, const BackSpace<T>& space) {
  constexpr int64_t kLanes = T::Vectors::kLanes, kWidth = panel_width<T>();
  const int64_t both = run.inputs + run.outputs, groups = kept.width / kLanes, stride = row_length<T>(run.rows);
  const Buffer<typename T::In> inputs(both * stride);
  const Buffer<float> result(groups * both * kWidth);
  if (!inputs.get() || !result.get()) return false;
  transpose_inputs<T>(kept.inputs, kept.input_stride, run.rows, both, inputs.get(), stride);
  if (!multiply_rows<T>(inputs.get(), stride, both, kept.gradients(0), kept.gradient_stride(), run.rows, groups,
                        result.get()))
    return false;
  for (int64_t group = 0; group < groups; group++)
    for (int64_t gate = 0; gate < 4; gate++) {
      const int64_t first = group * kLanes, left = smaller(kLanes, run.cells - first), to = gate * run.cells + first;
      if (left <= 0) continue;
      const float* from = result.get() + group * both * kWidth + gate * kLanes;
      transpose(from, kWidth, run.inputs, left, run.grad_input_weight + to * run.inputs, run.inputs);
      transpose(from + run.inputs * kWidth, kWidth, run.outputs, left, run.grad_state_weight + to * run.outputs,
                run.outputs);
      __builtin_memcpy(run.grad_bias + to, space.bias.get() + (group * 4 + gate) * kLanes,
                       static_cast<size_t>(left) * sizeof(float));
    }
  return true;
}

template <class T>
bool projection_weights(const TrainingRun& run, const Kept<T>& kept, const BackSpace<T>& space) {
  const int64_t stride = row_length<T>(run.rows);
  const Buffer<typename T::In> hidden(run.outputs * stride);
  const Buffer<float> result(run.outputs * kept.width);
  if (!hidden.get() || !result.get()) return false;
  transpose_inputs<T>(space.hidden_inputs.get(), space.hidden_stride, run.rows, run.outputs, hidden.get(), stride);
  if (!multiply_rows<T>(hidden.get(), stride, run.outputs, kept.memories, kept.memory_stride, run.rows,
                        kept.width / panel_width<T>(), result.get()))
    return false;
  for (int64_t row = 0; row < run.outputs; row++)
    for (int64_t k = 0; k < run.cells; k += panel_width<T>())
      __builtin_memcpy(run.grad_projection + row * run.cells + k, in_result<T>(result.get(), run.outputs, row, k),
                       static_cast<size_t>(smaller(panel_width<T>(), run.cells - k)) * sizeof(float));
  return true;
}

template <class T>
bool run_backward(const TrainingRun& run) {
  const Kept<T> kept(run, run.kept);
  const BackSpace<T> space(run, kept);
  if (!space.complete() || !pack_back<T>(run, kept, space)) return false;
  fill_zero(space.cell.get(), run.sizes[0] * kept.width);
  fill_zero(space.bias.get(), 4 * kept.width);
  int64_t begin = run.rows, later = 0;
  for (int64_t t = run.steps - 1; t >= 0; t--) {
    const int64_t rows = run.sizes[t];
    begin -= rows;
    gather_hidden<T>(run, space, begin, rows, later);
    backward_step<T>(run, kept, space, before_step(run, kept, t, begin), begin, rows);
    later = rows;
  }
  return gate_weights<T>(run, kept, space) && (!run.projection || projection_weights<T>(run, kept, space));
}

}  // namespace
