// Plain data shared by all instruction sets. There is no code here: a function compiled for one instruction set
// must never be the one that the linker keeps for another.
#pragma once

#include <cstddef>
#include <cstdint>

enum Number : int32_t { kFloat32, kBFloat16, kInt8 };
enum Activation : int32_t { kNone, kRelu, kSigmoid, kTanh, kHighway };

// A weight matrix (parts · outputs, inputs), packed for x ↦ x Wᵀ + b.
//
// The tile of a product is some rows × four vectors of outputs: a panel. Weights lie as
//     [panels][steps][4 vectors][lanes][group]
// where a step is the `group` inputs that one instruction takes (float32 1, bfloat16 2, int8 4), so that the inner
// loop reads them in order. The four vectors of a panel hold 4 / parts vectors of every part: for the parts i, f, j, o
// of an LSTM all four gates of the same cells, for a highway its gate and its transform of the same outputs.
// Bias, scale and offset lie as [panels][4 vectors][lanes]. Padding is zero.
struct Matrix {
  int64_t inputs, outputs, parts;
  int64_t steps, panels;
  const char* weights;
  const float* bias;
  const float* scale;     // int8: what one unit of each output's weights is worth
  const int32_t* offset;  // int8: - zero point of the inputs · Σ of each output's weights
  float bound;            // int8: what |x| never exceeds; 0 if unknown: then every row has a range of its own
};

// What the weights and biases of the gates i, f, j, o are multiplied by, so that 2ᶻ is e⁻ⁱ, e⁻ᶠ, e⁻²ʲ, e⁻ᵒ.
constexpr float kLog2e = 1.44269504f;
constexpr float kGateFactors[] = {-kLog2e, -kLog2e, -2 * kLog2e, -kLog2e};

// One layer of an LSTM in one direction. The weights of the gates include their factors.
struct Layer {
  Matrix input, state, projection;  // without projection: projection.outputs = 0
};

// All layers of an LSTM in one direction.
struct Lstm {
  int64_t layers, cells, outputs;  // L, N, P; P = N without projection
  bool skip;                       // add a layer's input to its output, from the second layer on
  float cell_clip, output_clip;    // infinity: none
  const Layer* layer;
};

// One call. Packed order: step after step, in each step the sentences that still run, longest first.
struct Run {
  const float* x;        // (S, P) in the caller's order
  int64_t rows;          // S
  const int64_t* index;  // (S) row of x and out for each packed place
  const int32_t* sizes;  // (steps) sentences that still run
  int64_t steps;
  int64_t batch;          // B, at least sizes[0]
  const float* hidden;    // (L, B, P) at the start, longest sentence first; null for zero
  const float* cell;      // (L, B, N)
  int64_t hidden_stride;  // numbers between layers, also of the states at the end
  int64_t cell_stride;
  float* out;  // (L, S, P) in the caller's order, at these strides
  int64_t layer_stride;
  int64_t row_stride;
  float* end_hidden;  // (L, B, P) after each sentence's last token; null if not wanted
  float* end_cell;    // (L, B, N)
};

// One layer of an LSTM in one direction, in training: forward, then backward with the same fields. The rows of the
// weights go by the gates i, f, j, o. Packed order as in `Run`; B is the number of rows of the first step.
struct TrainingRun {
  int64_t inputs, outputs, cells;  // D, P, N; P = N without projection
  float cell_clip, output_clip;    // infinity: none
  const float* input_weight;       // (4N, D)
  const float* state_weight;       // (4N, P)
  const float* bias;               // (4N)
  const float* projection;         // (P, N) or null
  int64_t rows;                    // S
  const int32_t* sizes;            // (steps)
  int64_t steps;
  const float* x;         // (S, D)
  const float* keep;      // (S) 0 where the state is set to zero before the row, else 1; null: nowhere
  const float* hidden;    // (B, P) at the start; null for zero
  const float* cell;      // (B, N)
  float* out;             // (S, P)
  float* end_cell;        // (rows of the last step, N)
  char* kept;             // what forward leaves for backward, which overwrites it
  const float* grad_out;  // (S, P), and the gradients of the others
  float* grad_x;
  float* grad_input_weight;
  float* grad_state_weight;
  float* grad_bias;
  float* grad_projection;
};

// The softmax of n positions over K rows of a table, and its gradients, in training.
struct SoftmaxRun {
  int64_t positions, words, dim;  // n, K, P
  const float* hidden;            // (n, P)
  const float* weight;            // (K, P)
  const float* bias;              // (K)
  const int64_t* column;          // (n) the target among the K; with `score`: the column to leave out, or -1
  const float* score;             // (n) the target's score, if it is beside the K; else null
  float* total;                   // (n) Σ exp(score - largest score), and the target's score minus the largest:
  float* shifted;                 // (n) loss = log(total) - shifted
  float* grad_hidden;             // (n, P)
  float* grad_weight;             // (K, P)
  float* grad_bias;               // (K)
  float* grad_score;              // (n)
};

// The character convolution of one width, in training.
struct ConvolutionRun {
  int64_t tokens, length, width, characters, filters;
  const int64_t* ids;     // (tokens, length) below `characters`
  const int64_t* used;    // (tokens) ids before the padding
  const float* table;     // (width · characters, filters)
  float* out;             // (tokens, filters)
  float* best;            // (tokens, filters) the window of the maximum
  const float* grad_out;  // (tokens, filters)
  float* grad_table;      // (width · characters, filters)
};

// A linear layer in training; backward if there is a gradient.
struct LinearRun {
  int64_t rows, inputs, outputs;
  const float* x;         // (rows, inputs)
  const float* weight;    // (outputs, inputs)
  const float* bias;      // (outputs)
  float* out;             // (rows, outputs)
  const float* grad_out;  // (rows, outputs), or null
  float* grad_x;
  float* grad_weight;
  float* grad_bias;
};

// For float32 and bfloat16 alone.
struct Training {
  int64_t (*kept_bytes)(const TrainingRun&);
  bool (*forward)(const TrainingRun&);
  bool (*backward)(const TrainingRun&);
  bool (*softmax)(const SoftmaxRun&);
  bool (*linear)(const LinearRun&);
  void (*maxima)(const ConvolutionRun&);
  void (*maxima_gradient)(const ConvolutionRun&);
};

// What each instruction set offers for one number type. Functions return false if memory runs out.
struct Operations {
  int32_t lanes;       // numbers in a vector
  int32_t group;       // inputs in a step
  int32_t zero_point;  // int8: what zero is as an input
  bool (*lstm)(const Lstm&, const Run&);
  bool (*product)(const Matrix&, const float* x, int64_t rows, float* out, Activation);
  void (*activate)(const float* x, int64_t count, float* out, Activation);
  double (*peak)(int64_t repeats);  // inner loop on data in the first cache; returns the multiplications
  Training training;                // int8: all null
};

extern const Operations avx2_float32, avx2_int8, avxvnni_int8;
extern const Operations avx512_float32, avx512_int8, avx512vnni_int8, avx512bf16_bfloat16;
