// Number types of the products: what an input is, what one step adds to the sums, what the sums are worth.
#pragma once

#include "matrix.h"

namespace {

// Inputs and weights as they are; a step is one input.
template <class V>
struct Float32 {
  using Vectors = V;
  using In = float;
  using Word = typename V::Floats;
  using Sum = typename V::Floats;
  static constexpr int kGroup = 1, kRows = V::kRows, kBothRows = 0, kZero = 0, kExp2Degree = 5;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kScaled = false;
  static INLINE Word load(const char* p) { return V::load(reinterpret_cast<const float*>(p)); }
  static INLINE Word broadcast(const In* p) { return V::set(*p); }
  static INLINE Sum add(Sum sum, Word input, Word weight) { return V::multiply_add(input, weight, sum); }
  static INLINE void store(In* p, typename V::Floats x) { V::store(p, x); }
  // One step of a vector of outputs, from the rows of its inputs.
  static INLINE void pack(char* to, const In* row, const In*) { V::store(reinterpret_cast<float*>(to), V::load(row)); }
};

// Inputs and weights rounded to bfloat16, sums in float32; a step is two inputs.
template <class V>
struct BFloat16 {
  using Vectors = V;
  using In = uint16_t;
  using Word = typename V::Ints;
  using Sum = typename V::Floats;
  static constexpr int kGroup = 2, kRows = V::kRows, kBothRows = 0, kZero = 0, kExp2Degree = 5;
  static constexpr float kUnit = 1.0f;
  static constexpr bool kScaled = false;
  static INLINE Word load(const char* p) { return V::load_ints(p); }
  static INLINE Word broadcast(const In* p) {
    int32_t pair;
    __builtin_memcpy(&pair, p, sizeof pair);
    return V::set_ints(pair);
  }
  static INLINE Sum add(Sum sum, Word input, Word weight) { return V::dot_bfloat16(sum, input, weight); }
  static INLINE void store(In* p, typename V::Floats x) { V::store_bfloat16(p, x); }
  // One step of a vector of outputs, from the rows of its inputs.
  static INLINE void pack(char* to, const In* even, const In* odd) { V::store_ints(to, V::in_turn(even, odd)); }
};

// Weights in 8 bits with one scale for each output, inputs in 8 bits (7 without VNNI) with one scale for each row:
//     x ≈ scale · (q - zero),   q = round(x / scale) + zero,   scale = 2 · range / limit
// which is what FBGEMM does in torch's int8 products. Sums are exact integers; a step is four inputs.
template <class V>
struct Int8 {
  using Vectors = V;
  using In = uint8_t;
  using Word = typename V::Ints;
  using Sum = typename V::Ints;
  static constexpr int kGroup = 4, kRows = V::kInt8Rows, kBothRows = V::kInt8BothRows;
  static constexpr int kLimit = V::kInt8Limit, kZero = (kLimit + 1) / 2;
  static constexpr int kExp2Degree = 4;  // an error of 2e-6 in σ and tanh is little beside that of the products
  static constexpr float kUnit = static_cast<float>(2.0 / kLimit);  // scale for the range ± 1
  static constexpr bool kScaled = true;
  static INLINE Word load(const char* p) { return V::load_ints(p); }
  static INLINE Word broadcast(const In* p) {
    int32_t four;
    __builtin_memcpy(&four, p, sizeof four);
    return V::set_ints(four);
  }
  static INLINE Sum add(Sum sum, Word input, Word weight) { return V::dot(sum, input, weight); }
  // x in units of its row's scale.
  static INLINE void store(In* p, typename V::Floats x) { V::store_bytes(p, x, kZero, V::kInt8Most); }
};

}  // namespace
