// Vectors of 16 numbers: AVX512 (F, BW, DQ, VL), as every such CPU since Skylake-X has.
#pragma once

#include <immintrin.h>

#include "matrix.h"

#define INLINE inline __attribute__((always_inline))

namespace {

struct Avx512 {
  using Floats = __m512;
  using Ints = __m512i;
  static constexpr int kLanes = 16;
  static constexpr int kRows = 6;  // 6 × 4 sums, 4 weights and an input fit in 32 registers
  static constexpr int kInt8Rows = 6;
  static constexpr int kInt8BothRows = 3;  // of two products at once

  static INLINE Floats set(float x) { return _mm512_set1_ps(x); }
  static INLINE Floats load(const float* p) { return _mm512_loadu_ps(p); }
  static INLINE Floats load(const float* p, int64_t count) { return _mm512_maskz_loadu_ps(first(count), p); }
  static INLINE void store(float* p, Floats x) { _mm512_storeu_ps(p, x); }
  static INLINE void store(float* p, Floats x, int64_t count) { _mm512_mask_storeu_ps(p, first(count), x); }
  // Past the caches; p is aligned.
  static INLINE void stream(float* p, Floats x) { _mm512_stream_ps(p, x); }
  static INLINE Ints set_ints(int32_t x) { return _mm512_set1_epi32(x); }
  static INLINE Ints load_ints(const void* p) { return _mm512_loadu_si512(p); }
  static INLINE void store_ints(void* p, Ints x) { _mm512_storeu_si512(p, x); }
  static INLINE Floats to_floats(Ints x) { return _mm512_cvtepi32_ps(x); }
  static INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm512_fmadd_ps(a, b, c); }
  // If one is not a number, the second argument is returned.
  static INLINE Floats min(Floats a, Floats b) { return _mm512_min_ps(a, b); }
  static INLINE Floats max(Floats a, Floats b) { return _mm512_max_ps(a, b); }
  static INLINE Floats abs(Floats x) { return _mm512_abs_ps(x); }
  // x, but zero where |value| ≥ limit.
  static INLINE Floats if_below(Floats x, Floats value, float limit) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(abs(value), set(limit), _CMP_NGE_UQ), x);
  }
  // x where a > b, else y.
  static INLINE Floats if_above(Floats a, Floats b, Floats x, Floats y) {
    return _mm512_mask_mov_ps(y, _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), x);
  }
  static INLINE float largest(Floats x) { return _mm512_reduce_max_ps(x); }
  static INLINE float sum(Floats x) { return _mm512_reduce_add_ps(x); }

  // t = n + r, n = floor(t): r, and p · 2ⁿ, for any t.
  static INLINE Floats in_range(Floats t) { return t; }
  static INLINE Floats fraction(Floats t) { return _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
  static INLINE Floats scale(Floats p, Floats t) { return _mm512_scalef_ps(p, t); }
  // round(x) + zero, within 0 … limit, as bytes.
  static INLINE void store_bytes(uint8_t* p, Floats x, int32_t zero, int32_t limit) {
    const Ints rounded = _mm512_add_epi32(_mm512_cvtps_epi32(x), set_ints(zero));
    const Ints inside = _mm512_min_epi32(_mm512_max_epi32(rounded, set_ints(0)), set_ints(limit));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(inside));
  }
  // Without VNNI: products of unsigned and signed bytes in pairs of 16 bits, which inputs up to 128 cannot overflow.
  static constexpr int kInt8Limit = 127, kInt8Most = 128;
  static INLINE Ints dot(Ints sum, Ints inputs, Ints weights) {
    const Ints pairs = _mm512_maddubs_epi16(inputs, weights);
    return _mm512_add_epi32(sum, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
  }

 private:
  static INLINE __mmask16 first(int64_t count) { return static_cast<__mmask16>((1u << count) - 1); }
};

}  // namespace
