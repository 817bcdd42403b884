// The C interface: which instruction sets this CPU has, packing of weights, and calls. Compiled for any x86-64 CPU.
#include <cmath>
#include <cpuid.h>
#include <cstdlib>
#include <cstring>
#include <immintrin.h>
#include <memory>
#include <new>
#include <vector>

#include "matrix.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace {

// Codes of `elmokit_*` functions.
constexpr int32_t kDone = 0, kNoMemory = 1, kBadArgument = 2;

struct Engine {
  const char* name;
  bool (*available)();
  const Operations* numbers[3];  // by Number; null where the instruction set has none
};

struct Features {
  uint32_t ecx1 = 0, ebx7 = 0, ecx7 = 0, eax7_1 = 0;
  uint64_t saved = 0;  // registers that the operating system saves for each process
  Features() {
    uint32_t a, b, c, d;
    if (__get_cpuid(1, &a, &b, &c, &d)) ecx1 = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) {
      ebx7 = b, ecx7 = c;
      if (a >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d)) eax7_1 = a;
    }
    if (ecx1 & bit_OSXSAVE) {
      uint32_t low, high;
      __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
      saved = static_cast<uint64_t>(high) << 32 | low;
    }
  }
};

const Features& features() {
  static const Features found;
  return found;
}

bool has_avx2() {
  const Features& cpu = features();
  return (cpu.saved & 0x6) == 0x6 && (cpu.ebx7 & bit_AVX2) && (cpu.ecx1 & bit_FMA);
}
bool has_avxvnni() { return has_avx2() && (features().eax7_1 & (1u << 4)); }
bool has_avx512() {
  constexpr uint32_t kAll = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
  return has_avx2() && (features().saved & 0xe6) == 0xe6 && (features().ebx7 & kAll) == kAll;
}
bool has_avx512vnni() { return has_avx512() && (features().ecx7 & bit_AVX512VNNI); }
bool has_avx512bf16() { return has_avx512vnni() && (features().eax7_1 & (1u << 5)); }

// The best last.
const Engine kEngines[] = {
    {"avx2", has_avx2, {&avx2_float32, nullptr, &avx2_int8}},
    {"avxvnni", has_avxvnni, {&avx2_float32, nullptr, &avxvnni_int8}},
    {"avx512", has_avx512, {&avx512_float32, nullptr, &avx512_int8}},
    {"avx512vnni", has_avx512vnni, {&avx512_float32, nullptr, &avx512vnni_int8}},
    {"avx512bf16", has_avx512bf16, {&avx512_float32, &avx512bf16_bfloat16, &avx512vnni_int8}},
};
constexpr int32_t kNumEngines = sizeof kEngines / sizeof *kEngines;

// Flush numbers too small for the fast path of the CPU to zero while this exists: saturated gates make many.
class FlushedDenormals {
 public:
  FlushedDenormals() : before_(_mm_getcsr()) { _mm_setcsr(before_ | 0x8040); }
  ~FlushedDenormals() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};

struct Free {
  void operator()(void* p) const { std::free(p); }
};
template <class Item>
using Memory = std::unique_ptr<Item, Free>;

// Large blocks begin with a page, so that processes can share their pages.
template <class Item>
Memory<Item> zeros(int64_t count) {
  const size_t wanted = static_cast<size_t>(count) * sizeof(Item) + 64, alignment = wanted < 65536 ? 64 : 4096;
  const size_t bytes = (wanted + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes);
  if (!memory) throw std::bad_alloc();
  return Memory<Item>(static_cast<Item*>(std::memset(memory, 0, bytes)));
}

uint16_t bfloat16(float x) {  // nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if (x != x) return 0x7fc0;
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// A matrix and the memory that holds it.
struct Packed {
  Matrix matrix{};
  Memory<char> weights;
  Memory<float> bias, scale;
  Memory<int32_t> offset;

  Packed() = default;
  int64_t bytes(int64_t lanes) const { return matrix.panels * matrix.steps * 16 * lanes; }
  // Each part is multiplied by its factor, if there are factors.
  Packed(const Operations& with, Number number, int64_t parts, int64_t outputs, int64_t inputs, const float* from,
         const float* from_bias, float bound, const float* factors = nullptr) {
    const int64_t lanes = with.lanes, vectors = 4 / parts;
    Matrix& m = matrix;
    m.inputs = inputs, m.outputs = outputs, m.parts = parts, m.bound = bound;
    m.steps = (inputs + with.group - 1) / with.group;
    m.panels = (outputs + vectors * lanes - 1) / (vectors * lanes);
    weights = zeros<char>(m.panels * m.steps * 16 * lanes);
    bias = zeros<float>(m.panels * 4 * lanes);
    scale = zeros<float>(m.panels * 4 * lanes);
    offset = zeros<int32_t>(m.panels * 4 * lanes);
    m.weights = weights.get(), m.bias = bias.get(), m.scale = scale.get(), m.offset = offset.get();
    for (int64_t part = 0; part < parts; part++) {
      const float factor = factors ? factors[part] : 1.0f;
      for (int64_t output = 0; output < outputs; output++) {
        const int64_t panel = output / (vectors * lanes), within = output % (vectors * lanes);
        const int64_t vector = part * vectors + within / lanes, lane = within % lanes;
        const int64_t row = part * outputs + output, place = (panel * 4 + vector) * lanes + lane;
        if (from_bias) bias.get()[place] = factor * from_bias[row];
        char* to = weights.get() + ((panel * m.steps * 4 + vector) * lanes + lane) * 4;
        pack_row(with, number, from + row * inputs, factor, to, scale.get() + place, offset.get() + place);
      }
    }
  }

 private:
  // Write the weights of one output, `group` of them every 16 · lanes bytes.
  void pack_row(const Operations& with, Number number, const float* row, float factor, char* to, float* scale,
                int32_t* zero) {
    float largest = 0.0f, poison = 0.0f;  // not zero, but NaN, if a weight is NaN or infinite
    for (int64_t k = 0; k < matrix.inputs; k++) {
      largest = std::fmax(largest, std::fabs(row[k]));
      poison += 0.0f * row[k];
    }
    const float unit = std::fmax(largest / 127, 1.17549435e-38f) + poison;
    *scale = factor * unit;
    int32_t sum = 0;
    for (int64_t k = 0; k < matrix.inputs; k++) {
      char* at = to + k / with.group * 16 * with.lanes + k % with.group * (4 / with.group);
      if (number == kFloat32) {
        const float scaled = factor * row[k];
        std::memcpy(at, &scaled, 4);
      } else if (number == kBFloat16) {
        const uint16_t rounded = bfloat16(factor * row[k]);
        std::memcpy(at, &rounded, 2);
      } else {
        const int8_t rounded = poison == 0.0f ? static_cast<int8_t>(std::nearbyint(row[k] / unit)) : int8_t{0};
        std::memcpy(at, &rounded, 1);
        sum += rounded;
      }
    }
    *zero = -with.zero_point * sum;
  }
};

const Operations* find(int32_t engine, int32_t number) {
  if (engine < 0 || engine >= kNumEngines || number < kFloat32 || number > kInt8) return nullptr;
  return kEngines[engine].available() ? kEngines[engine].numbers[number] : nullptr;
}

struct Product {
  const Operations* with;
  Packed packed;
};

struct PackedLayer {
  Packed input, state, projection;
};

struct Recurrent {
  const Operations* with;
  Number number;
  Lstm lstm{};
  std::vector<PackedLayer> packed;
  std::vector<Layer> layers;
};

bool is_packing(const Run& run) {  // falling sizes whose sum is S, and rows within x
  int64_t rows = 0, before = run.batch;
  for (int64_t t = 0; t < run.steps; t++) {
    if (run.sizes[t] < 1 || run.sizes[t] > before) return false;
    before = run.sizes[t];
    rows += before;
  }
  for (int64_t row = 0; row < run.rows; row++)
    if (run.index[row] < 0 || run.index[row] >= run.rows) return false;
  return rows == run.rows;
}

bool is_layer(const TrainingRun& run) {  // falling sizes whose sum is S
  if (run.inputs < 1 || run.outputs < 1 || run.cells < 1 || run.steps < 1) return false;
  if (!run.projection && run.outputs != run.cells) return false;
  int64_t rows = 0;
  for (int64_t t = 0; t < run.steps; t++) {
    if (run.sizes[t] < 1 || (t > 0 && run.sizes[t] > run.sizes[t - 1])) return false;
    rows += run.sizes[t];
  }
  return rows == run.rows && !run.hidden == !run.cell;
}

bool is_convolution(const ConvolutionRun& run) {  // sizes that fit together, and ids within the table
  if (run.tokens < 0 || run.width < 1 || run.length < run.width || run.characters < 1 || run.filters < 1) return false;
  for (int64_t token = 0; token < run.tokens; token++)
    if (run.used[token] < 0 || run.used[token] > run.length) return false;
  for (int64_t k = 0; k < run.tokens * run.length; k++)
    if (run.ids[k] < 0 || run.ids[k] >= run.characters) return false;
  return true;
}

}  // namespace

// Version of this interface: the loader refuses a library of another one.
EXPORT int32_t elmokit_version() { return 3; }

EXPORT int32_t elmokit_num_engines() { return kNumEngines; }

EXPORT const char* elmokit_engine_name(int32_t engine) {
  return engine < 0 || engine >= kNumEngines ? nullptr : kEngines[engine].name;
}

// Whether this CPU and operating system have the engine, and the engine that number type.
EXPORT int32_t elmokit_supports(int32_t engine, int32_t number) { return find(engine, number) != nullptr; }

// A matrix (parts · outputs, inputs) with its bias or null; null if the arguments are wrong or memory runs out.
EXPORT Product* elmokit_product_new(int32_t engine, int32_t number, int64_t parts, int64_t outputs, int64_t inputs,
                                    const float* weight, const float* bias, float bound) try {
  const Operations* with = find(engine, number);
  if (!with || (parts != 1 && parts != 2 && parts != 4) || outputs < 1 || inputs < 1) return nullptr;
  return new Product{with, Packed(*with, static_cast<Number>(number), parts, outputs, inputs, weight, bias, bound)};
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Where the packed weights are, and how many bytes; -1 if there is no weight of that number.
EXPORT int64_t elmokit_product_memory(const Product* product, int64_t number, const void** place) {
  if (number != 0) return -1;
  *place = product->packed.weights.get();
  return product->packed.bytes(product->with->lanes);
}

EXPORT void elmokit_product_free(Product* product) { delete product; }

// x (rows, inputs) → out (rows, outputs).
EXPORT int32_t elmokit_product_run(const Product* product, const float* x, int64_t rows, float* out,
                                   int32_t activation) {
  const Matrix& w = product->packed.matrix;
  const bool highway = activation == kHighway;
  if (rows < 0 || activation < kNone || activation > kHighway || w.parts != (highway ? 2 : 1)) return kBadArgument;
  if (highway && w.inputs != w.outputs) return kBadArgument;
  const FlushedDenormals flushed;
  return product->with->product(w, x, rows, out, static_cast<Activation>(activation)) ? kDone : kNoMemory;
}

// An LSTM of one direction without layers; they follow by elmokit_lstm_add. Clips may be infinity.
EXPORT Recurrent* elmokit_lstm_new(int32_t engine, int32_t number, int64_t cells, int64_t outputs, int32_t skip,
                                   float cell_clip, float output_clip) try {
  const Operations* with = find(engine, number);
  if (!with || cells < 1 || outputs < 1) return nullptr;
  auto made = std::make_unique<Recurrent>();
  made->with = with;
  made->number = static_cast<Number>(number);
  made->lstm = {0, cells, outputs, skip != 0, cell_clip, output_clip, nullptr};
  return made.release();
} catch (const std::bad_alloc&) {
  return nullptr;
}

// Weights of a layer: (4N, P), (4N, P), (4N,), and (P, N) or null.
EXPORT int32_t elmokit_lstm_add(Recurrent* recurrent, const float* input, const float* state, const float* bias,
                                const float* projection) try {
  Lstm& lstm = recurrent->lstm;
  const int64_t cells = lstm.cells, outputs = lstm.outputs;
  if (!projection && outputs != cells) return kBadArgument;
  const Operations& with = *recurrent->with;
  const float bound = !projection ? 1.0f : std::isinf(lstm.output_clip) ? 0.0f : lstm.output_clip;
  PackedLayer packed{Packed(with, recurrent->number, 4, cells, outputs, input, bias, 0.0f, kGateFactors),
                     Packed(with, recurrent->number, 4, cells, outputs, state, nullptr, bound, kGateFactors), Packed()};
  if (projection) packed.projection = Packed(with, recurrent->number, 1, outputs, cells, projection, nullptr, 1.0f);
  recurrent->layers.push_back({packed.input.matrix, packed.state.matrix, packed.projection.matrix});
  recurrent->packed.push_back(std::move(packed));
  lstm.layers = static_cast<int64_t>(recurrent->layers.size());
  lstm.layer = recurrent->layers.data();
  return kDone;
} catch (const std::bad_alloc&) {
  return kNoMemory;
}

// The same for the weights of input, state and projection of each layer; 0 bytes for a missing projection.
EXPORT int64_t elmokit_lstm_memory(const Recurrent* recurrent, int64_t number, const void** place) {
  if (number < 0 || number >= 3 * recurrent->lstm.layers) return -1;
  const PackedLayer& layer = recurrent->packed[static_cast<size_t>(number / 3)];
  const Packed& packed = number % 3 == 0 ? layer.input : number % 3 == 1 ? layer.state : layer.projection;
  *place = packed.weights.get();
  return packed.bytes(recurrent->with->lanes);
}

EXPORT void elmokit_lstm_free(Recurrent* recurrent) { delete recurrent; }

EXPORT int32_t elmokit_lstm_run(const Recurrent* recurrent, const Run* run) {
  if (!is_packing(*run) || !run->hidden != !run->cell) return kBadArgument;
  const FlushedDenormals flushed;
  return recurrent->with->lstm(recurrent->lstm, *run) ? kDone : kNoMemory;
}

// Memory for a call of elmokit_lstm_forward to leave what elmokit_lstm_backward needs; 0 if the engine cannot train.
EXPORT int64_t elmokit_lstm_kept(int32_t engine, int32_t number, const TrainingRun* run) {
  const Operations* with = find(engine, number);
  return with && with->training.kept_bytes && is_layer(*run) ? with->training.kept_bytes(*run) : 0;
}

EXPORT int32_t elmokit_lstm_forward(int32_t engine, int32_t number, const TrainingRun* run) {
  const Operations* with = find(engine, number);
  if (!with || !with->training.forward || !is_layer(*run)) return kBadArgument;
  const FlushedDenormals flushed;
  return with->training.forward(*run) ? kDone : kNoMemory;
}

EXPORT int32_t elmokit_lstm_backward(int32_t engine, int32_t number, const TrainingRun* run) {
  const Operations* with = find(engine, number);
  if (!with || !with->training.backward || !is_layer(*run)) return kBadArgument;
  const FlushedDenormals flushed;
  return with->training.backward(*run) ? kDone : kNoMemory;
}

EXPORT int32_t elmokit_softmax(int32_t engine, int32_t number, const SoftmaxRun* run) {
  const Operations* with = find(engine, number);
  if (!with || !with->training.softmax || run->positions < 1 || run->words < 1 || run->dim < 1) return kBadArgument;
  for (int64_t k = 0; k < run->positions; k++)
    if (run->column[k] < (run->score ? -1 : 0) || run->column[k] >= run->words) return kBadArgument;
  const FlushedDenormals flushed;
  return with->training.softmax(*run) ? kDone : kNoMemory;
}

EXPORT int32_t elmokit_maxima(int32_t engine, int32_t number, const ConvolutionRun* run) {
  const Operations* with = find(engine, number);
  if (!with || !with->training.maxima || !is_convolution(*run)) return kBadArgument;
  const FlushedDenormals flushed;
  (run->grad_table ? with->training.maxima_gradient : with->training.maxima)(*run);
  return kDone;
}

EXPORT int32_t elmokit_linear(int32_t engine, int32_t number, const LinearRun* run) {
  const Operations* with = find(engine, number);
  if (!with || !with->training.linear || run->rows < 1 || run->inputs < 1 || run->outputs < 1) return kBadArgument;
  const FlushedDenormals flushed;
  return with->training.linear(*run) ? kDone : kNoMemory;
}

// For tests: σ and tanh of numbers.
EXPORT int32_t elmokit_activate(int32_t engine, int32_t number, const float* x, int64_t count, float* out,
                                int32_t activation) {
  const Operations* with = find(engine, number);
  if (!with || count < 0 || activation < kNone || activation > kTanh) return kBadArgument;
  const FlushedDenormals flushed;
  with->activate(x, count, out, static_cast<Activation>(activation));
  return kDone;
}

// For benchmarks: multiplications done by the inner loop alone, on data in the first cache.
EXPORT double elmokit_peak(int32_t engine, int32_t number, int64_t repeats) {
  const Operations* with = find(engine, number);
  return with ? with->peak(repeats) : 0.0;
}
