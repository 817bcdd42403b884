// Products with packed weights, and the activations that follow them, for any vectors and numbers.
#pragma once

#include <cstdlib>

#include "numbers.h"

// A loop over i = 0 … count - 1, unrolled: otherwise GCC keeps sums in memory instead of registers.
#if defined(__clang__)
#define UNROLLED(i, count) _Pragma("unroll") for (int i = 0; i < (count); i++)
#else
#define UNROLLED(i, count) _Pragma("GCC unroll 8") for (int i = 0; i < (count); i++)
#endif

namespace {

// Memory for `count` items, aligned to a cache line; `get()` is null if there is none.
template <class Item>
class Buffer {
 public:
  explicit Buffer(int64_t count) : memory_(std::malloc(static_cast<size_t>(count) * sizeof(Item) + 64)) {}
  ~Buffer() { std::free(memory_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  Item* get() const {
    return memory_ ? reinterpret_cast<Item*>((reinterpret_cast<uintptr_t>(memory_) + 63) & ~uintptr_t{63}) : nullptr;
  }

 private:
  void* memory_;
};

template <int kCount>
struct Count {
  static constexpr int value = kCount;
};

INLINE int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
INLINE int64_t round_up(int64_t count, int64_t whole) { return (count + whole - 1) / whole * whole; }

template <int kRows, class Function>
INLINE void for_last_rows(int64_t rows, int64_t first, Function&& function) {
  if constexpr (kRows > 0) {
    if (rows == kRows) return function(Count<kRows>{}, first);
    for_last_rows<kRows - 1>(rows, first, function);
  }
}

// Call function(Count<M>, first row) for blocks of M rows, M = kRows but for the last block.
template <int kRows, class Function>
INLINE void for_rows(int64_t rows, Function&& function) {
  int64_t row = 0;
  for (; row + kRows <= rows; row += kRows) function(Count<kRows>{}, row);
  for_last_rows<kRows - 1>(rows - row, row, function);
}

// sum[m][v] += Σₖ input[m][k] · weight[k][v] over the inputs k of one step: M rows times the four vectors of a panel.
// The side with fewer vectors stays in registers.
template <class T, int M>
INLINE void multiply_step(typename T::Sum (&sum)[M][4], const typename T::In* input, int64_t stride,
                          const char* weights) {
  constexpr int kBytes = T::Vectors::kLanes * 4;
  if constexpr (M > 4) {
    typename T::Word w[4];
    UNROLLED (v, 4) w[v] = T::load(weights + v * kBytes);
    UNROLLED (m, M) {
      const typename T::Word x = T::broadcast(input + m * stride);
      UNROLLED (v, 4) sum[m][v] = T::add(sum[m][v], x, w[v]);
    }
  } else {
    typename T::Word x[M];
    UNROLLED (m, M) x[m] = T::broadcast(input + m * stride);
    UNROLLED (v, 4) {
      const typename T::Word w = T::load(weights + v * kBytes);
      UNROLLED (m, M) sum[m][v] = T::add(sum[m][v], x[m], w);
    }
  }
}

// The same over `steps` steps. One sum is one chain of additions in the order of k, whatever M.
template <class T, int M>
INLINE void multiply(typename T::Sum (&sum)[M][4], const typename T::In* input, int64_t stride, const char* weights,
                     int64_t steps) {
  constexpr int kBytes = T::Vectors::kLanes * 4;
  typename T::Sum s[M][4];
  UNROLLED (m, M)
    UNROLLED (v, 4) s[m][v] = sum[m][v];
  for (int64_t step = 0; step < steps; step++, weights += 4 * kBytes, input += T::kGroup) {
    if constexpr (M <= 2) {  // so few rows wait for the weights
      UNROLLED (line, 4 * kBytes / 64) _mm_prefetch(weights + 2048 + line * 64, _MM_HINT_T0);
    }
    multiply_step<T, M>(s, input, stride, weights);
  }
  UNROLLED (m, M)
    UNROLLED (v, 4) sum[m][v] = s[m][v];
}

// Rows of inputs, as the product takes them.
template <class T>
struct Inputs {
  const typename T::In* rows;
  int64_t stride;
  const float* scale;  // int8: what one unit of each row is worth
  INLINE Inputs from(int64_t row) const { return {rows + row * stride, stride, T::kScaled ? scale + row : nullptr}; }
};

// Sums before the first step: zero, or for int8 what makes up for the zero point of the inputs.
template <class T, int M>
INLINE void start_sums(const Matrix& w, int64_t panel, typename T::Sum (&sum)[M][4]) {
  using V = typename T::Vectors;
  UNROLLED (m, M)
    UNROLLED (v, 4) {
      if constexpr (T::kScaled) {
        sum[m][v] = V::load_ints(w.offset + (panel * 4 + v) * V::kLanes);
      } else {
        sum[m][v] = V::set(0.0f);
      }
    }
}

// z += what the sums of an int8 product are worth: sum · scale of the row · scale of the output.
template <class T, int M>
INLINE void add_scaled(const Matrix& w, int64_t panel, const float* scale, const typename T::Sum (&sum)[M][4],
                       typename T::Vectors::Floats (&z)[M][4]) {
  using V = typename T::Vectors;
  UNROLLED (m, M) {
    const typename V::Floats row = V::set(scale[m]);
    UNROLLED (v, 4) {
      const typename V::Floats each = row * V::load(w.scale + (panel * 4 + v) * V::kLanes);
      z[m][v] = V::multiply_add(V::to_floats(sum[m][v]), each, z[m][v]);
    }
  }
}

// z[m] = the bias of a panel.
template <class V, int M>
INLINE void start_from_bias(const Matrix& w, int64_t panel, typename V::Floats (&z)[M][4]) {
  UNROLLED (m, M)
    UNROLLED (v, 4) z[m][v] = V::load(w.bias + (panel * 4 + v) * V::kLanes);
}

// Steps of one chain of additions; a longer sum is that of several chains, which rounds less.
constexpr int64_t kChain = 128;

// z += x Wᵀ for M rows and one panel.
template <class T, int M>
INLINE void add_product(const Matrix& w, int64_t panel, const Inputs<T>& x, typename T::Vectors::Floats (&z)[M][4]) {
  const char* weights = w.weights + panel * w.steps * 16 * T::Vectors::kLanes;
  if constexpr (T::kScaled) {
    typename T::Sum sum[M][4];
    start_sums<T, M>(w, panel, sum);
    multiply<T, M>(sum, x.rows, x.stride, weights, w.steps);
    add_scaled<T, M>(w, panel, x.scale, sum, z);
  } else {
    for (int64_t step = 0; step < w.steps; step += kChain) {
      typename T::Sum sum[M][4];
      start_sums<T, M>(w, panel, sum);
      multiply<T, M>(sum, x.rows + step * T::kGroup, x.stride, weights + step * 16 * T::Vectors::kLanes,
                     smaller(w.steps - step, kChain));
      UNROLLED (m, M)
        UNROLLED (v, 4) z[m][v] = z[m][v] + sum[m][v];
    }
  }
}

// z += x Wᵀ + h Uᵀ for M rows and one panel of int8: both at once, because the sums of one would need the registers
// that hold z. W and U have the same sizes.
template <class T, int M>
INLINE void add_both_products(const Matrix& w, const Inputs<T>& x, const Matrix& u, const Inputs<T>& h, int64_t panel,
                              typename T::Vectors::Floats (&z)[M][4]) {
  constexpr int kBytes = T::Vectors::kLanes * 4;
  typename T::Sum of_x[M][4], of_h[M][4];
  start_sums<T, M>(w, panel, of_x);
  start_sums<T, M>(u, panel, of_h);
  for (int64_t step = 0; step < w.steps; step++) {
    const int64_t place = (panel * w.steps + step) * 4 * kBytes;
    multiply_step<T, M>(of_x, x.rows + step * T::kGroup, x.stride, w.weights + place);
    multiply_step<T, M>(of_h, h.rows + step * T::kGroup, h.stride, u.weights + place);
  }
  add_scaled<T, M>(w, panel, x.scale, of_x, z);
  add_scaled<T, M>(u, panel, h.scale, of_h, z);
}

// Round rows of `count` numbers to inputs of the product. Rows of `to` are a multiple of a vector long.
template <class T>
INLINE void convert_row(const Matrix& w, const float* x, int64_t count, typename T::In* to, float* scale) {
  using V = typename T::Vectors;
  float divisor = 1.0f, units = 1.0f;
  if constexpr (T::kScaled) {
    const float unit = w.bound > 0.0f ? static_cast<float>(2.0 * w.bound / T::kLimit) : T::kUnit;
    float poison = 0.0f * x[0];
    if (w.bound == 0.0f) {  // a row that holds NaN or infinity becomes NaN as a whole
      typename V::Floats most = V::set(1.17549435e-38f), zeros = V::set(0.0f);
      for (int64_t k = 0; k < count; k += V::kLanes) {
        const typename V::Floats part = V::load(x + k, smaller(count - k, V::kLanes));
        most = V::max(V::abs(part), most);
        zeros = V::multiply_add(part, V::set(0.0f), zeros);
      }
      divisor = V::largest(most);
      poison = V::sum(zeros);
    }
    units = 1.0f / unit;
    *scale = unit * divisor + poison;
  }
  for (int64_t k = 0; k < count; k += V::kLanes) {
    const typename V::Floats part = V::load(x + k, smaller(count - k, V::kLanes));
    T::store(to + k, T::kScaled ? part / V::set(divisor) * V::set(units) : part);
  }
}

// Shared by sigmoid and tanh: 2ᵗ for t ≤ 30 (larger t count as 30); 2⁰ is exactly 1. t = n + r with 0 ≤ r < 1, 2ʳ by a
// polynomial, minimax for the relative error, which is below 1.6e-7 (degree 5) or 3.1e-6 (degree 4).
template <class V, int kDegree = 5>
INLINE typename V::Floats exp2(typename V::Floats t) {
  t = V::in_range(V::min(V::set(30.0f), t));
  const typename V::Floats r = V::fraction(t);
  typename V::Floats p;
  if constexpr (kDegree == 5) {
    p = V::multiply_add(V::set(0.00186714029f), r, V::set(0.00901700743f));
    p = V::multiply_add(p, r, V::set(0.0557999313f));
    p = V::multiply_add(p, r, V::set(0.240164444f));
    p = V::multiply_add(p, r, V::set(0.693151295f));
  } else {
    p = V::multiply_add(V::set(0.0134266838f), r, V::set(0.0522424728f));
    p = V::multiply_add(p, r, V::set(0.241280198f));
    p = V::multiply_add(p, r, V::set(0.693044841f));
  }
  p = V::multiply_add(p, r, V::set(1.0f));
  return V::scale(p, t);
}

// e⁻ˣ and e⁻²ˣ, of which σ(x) = 1 / (1 + e⁻ˣ) and tanh(x) = (1 - e⁻²ˣ) / (1 + e⁻²ˣ) are made.
template <class V>
INLINE typename V::Floats exp_minus(typename V::Floats x) {
  return exp2<V>(x * V::set(-kLog2e));
}
template <class V>
INLINE typename V::Floats exp_minus_twice(typename V::Floats x) {
  return exp2<V>(x * V::set(-2 * kLog2e));
}

// The absolute error of σ and tanh is below 2.5e-7; NaN stays NaN.
template <class V>
INLINE typename V::Floats activated(typename V::Floats x, Activation activation) {
  const typename V::Floats one = V::set(1.0f);
  if (activation == kRelu) return V::max(V::set(0.0f), x);
  if (activation == kSigmoid) return one / (one + exp_minus<V>(x));
  if (activation == kTanh) {
    const typename V::Floats e = exp_minus_twice<V>(x);
    return (one - e) / (one + e);
  }
  return x;
}

template <class V>
void activate(const float* x, int64_t count, float* out, Activation activation) {
  for (int64_t k = 0; k < count; k += V::kLanes) {
    const int64_t part = smaller(count - k, V::kLanes);
    V::store(out + k, activated<V>(V::load(x + k, part), activation), part);
  }
}

// Call done(Count<M>, panel, row, z) with z = b + x Wᵀ for every panel and block of rows.
//
// Weights of many steps would not stay in the first cache while all rows pass: the steps are divided into blocks, and
// the sums of a chunk of rows are kept meanwhile. A block is a chain of `add_product`, whatever the number of rows.
template <class T, class Function>
INLINE void for_products(const Matrix& w, const Inputs<T>& x, int64_t rows, Function&& done) {
  using V = typename T::Vectors;
  constexpr int64_t kChunk = 96;
  alignas(64) char kept[kChunk * 16 * V::kLanes];
  for (int64_t chunk = 0; chunk < rows; chunk += kChunk) {
    const int64_t some = smaller(kChunk, rows - chunk);
    for (int64_t panel = 0; panel < w.panels; panel++) {
      const char* weights = w.weights + panel * w.steps * 16 * V::kLanes;
      for (int64_t step = 0; step < w.steps; step += kChain) {
        const int64_t steps = smaller(kChain, w.steps - step);
        for_rows<T::kRows>(some, [&](auto number, int64_t row) {
          constexpr int M = decltype(number)::value;
          typename T::Sum sum[M][4];
          auto* keep = reinterpret_cast<float*>(kept + row * 16 * V::kLanes);
          if (T::kScaled && step > 0) {
            UNROLLED (m, M)
              UNROLLED (v, 4) sum[m][v] = (typename T::Sum)V::load(keep + (m * 4 + v) * V::kLanes);
          } else {
            start_sums<T, M>(w, panel, sum);
          }
          const auto* input = x.rows + (chunk + row) * x.stride + step * T::kGroup;
          multiply<T, M>(sum, input, x.stride, weights + step * 16 * V::kLanes, steps);
          if constexpr (!T::kScaled) {
            const float* before = w.bias + panel * 4 * V::kLanes;
            UNROLLED (m, M)
              UNROLLED (v, 4)
                sum[m][v] = sum[m][v] + V::load((step ? keep + m * 4 * V::kLanes : before) + v * V::kLanes);
          }
          if (step + steps < w.steps) {
            UNROLLED (m, M)
              UNROLLED (v, 4) V::store(keep + (m * 4 + v) * V::kLanes, (typename V::Floats)sum[m][v]);
          } else if constexpr (T::kScaled) {
            typename V::Floats z[M][4];
            start_from_bias<V, M>(w, panel, z);
            add_scaled<T, M>(w, panel, x.scale + chunk + row, sum, z);
            done(number, panel, chunk + row, z);
          } else {
            done(number, panel, chunk + row, sum);
          }
        });
      }
    }
  }
}

// out = activation(b + x Wᵀ); for a highway, whose parts are its gate and its transform,
//     out = x + σ(gate) · (relu(transform) - x).
template <class T>
bool run_product(const Matrix& w, const float* x, int64_t rows, float* out, Activation activation) {
  using V = typename T::Vectors;
  constexpr bool kAsTheyAre = sizeof(typename T::In) == sizeof(float);
  const int64_t stride = kAsTheyAre ? w.inputs : round_up(w.inputs, 64);
  Buffer<typename T::In> converted(kAsTheyAre ? 0 : rows * stride);
  Buffer<float> scale(T::kScaled ? rows : 0);
  if (!converted.get() || !scale.get()) return false;
  Inputs<T> inputs{converted.get(), stride, scale.get()};
  if constexpr (kAsTheyAre) {
    inputs.rows = x;
  } else {
    for (int64_t row = 0; row < rows; row++)
      convert_row<T>(w, x + row * w.inputs, w.inputs, converted.get() + row * stride, scale.get() + row);
  }
  const int64_t vectors = 4 / w.parts;  // of each part in a panel
  for_products<T>(w, inputs, rows, [&](auto number, int64_t panel, int64_t row, auto& z) {
    constexpr int M = decltype(number)::value;
    UNROLLED (v, 4) {
      const int64_t place = (panel * vectors + v) * V::kLanes;
      const int64_t count = smaller(w.outputs - place, V::kLanes);
      if (v >= vectors || count <= 0) break;
      UNROLLED (m, M) {
        typename V::Floats y = activated<V>(z[m][v], activation == kHighway ? kSigmoid : activation);
        if (activation == kHighway) {
          const typename V::Floats carried = V::load(x + (row + m) * w.inputs + place, count);
          y = V::multiply_add(y, activated<V>(z[m][(v + 2) % 4], kRelu) - carried, carried);
        }
        V::store(out + (row + m) * w.outputs + place, y, count);
      }
    }
  });
  return true;
}

// Multiplications of the inner loop on data in the first cache, for the share of the peak in benchmarks.
template <class T>
double run_peak(int64_t repeats) {
  constexpr int M = T::kRows, kSteps = 32;
  alignas(64) char weights[kSteps * 16 * T::Vectors::kLanes] = {};
  alignas(64) typename T::In inputs[M * kSteps * T::kGroup] = {};
  typename T::Sum sum[M][4] = {};
  for (int64_t k = 0; k < repeats; k++) {
    multiply<T, M>(sum, inputs, kSteps * T::kGroup, weights, kSteps);
    __asm__ volatile("" : : "r"(weights), "r"(inputs) : "memory");
  }
  UNROLLED (m, M)
    UNROLLED (v, 4) __asm__ volatile("" : : "v"(sum[m][v]));
  return static_cast<double>(repeats) * kSteps * M * 4 * T::Vectors::kLanes * T::kGroup;
}

}  // namespace
