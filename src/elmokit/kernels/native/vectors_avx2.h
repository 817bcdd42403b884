// Vectors of 8 numbers: AVX2 and FMA.
#pragma once

#include <immintrin.h>

#include "matrix.h"

#define INLINE inline __attribute__((always_inline))

namespace {

struct Avx2 {
  using Floats = __m256;
  using Ints = __m256i;
  static constexpr int kLanes = 8;
  static constexpr int kRows = 3;          // 3 × 4 sums, 3 inputs and a weight fit in 16 registers
  static constexpr int kInt8Rows = 2;      // without VNNI there are intermediate results, too
  static constexpr int kInt8BothRows = 0;  // too few registers for two products at once

  static INLINE Floats set(float x) { return _mm256_set1_ps(x); }
  static INLINE Floats load(const float* p) { return _mm256_loadu_ps(p); }
  static INLINE Floats load(const float* p, int64_t count) { return _mm256_maskload_ps(p, first(count)); }
  static INLINE void store(float* p, Floats x) { _mm256_storeu_ps(p, x); }
  static INLINE void store(float* p, Floats x, int64_t count) { _mm256_maskstore_ps(p, first(count), x); }
  // Past the caches; p is aligned.
  static INLINE void stream(float* p, Floats x) { _mm256_stream_ps(p, x); }
  static INLINE Ints set_ints(int32_t x) { return _mm256_set1_epi32(x); }
  static INLINE Ints load_ints(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
  static INLINE void store_ints(void* p, Ints x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }
  static INLINE Floats to_floats(Ints x) { return _mm256_cvtepi32_ps(x); }
  static INLINE Floats multiply_add(Floats a, Floats b, Floats c) { return _mm256_fmadd_ps(a, b, c); }
  // If one is not a number, the second argument is returned.
  static INLINE Floats min(Floats a, Floats b) { return _mm256_min_ps(a, b); }
  static INLINE Floats max(Floats a, Floats b) { return _mm256_max_ps(a, b); }
  static INLINE Floats abs(Floats x) { return _mm256_andnot_ps(set(-0.0f), x); }
  // x, but zero where |value| ≥ limit.
  static INLINE Floats if_below(Floats x, Floats value, float limit) {
    return _mm256_and_ps(x, _mm256_cmp_ps(abs(value), set(limit), _CMP_NGE_UQ));
  }
  // x where a > b, else y.
  static INLINE Floats if_above(Floats a, Floats b, Floats x, Floats y) {
    return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
  }
  static INLINE float largest(Floats x) {
    __m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_max_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
  }
  static INLINE float sum(Floats x) {
    __m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    y = _mm_add_ps(y, _mm_movehl_ps(y, y));
    return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
  }

  // t = n + r, n = floor(t): r, and p · 2ⁿ for 1 ≤ p ≤ 2 and |n| ≤ 126, by adding n to the exponent.
  static INLINE Floats in_range(Floats t) { return max(set(-126.0f), t); }
  static INLINE Floats fraction(Floats t) { return t - _mm256_floor_ps(t); }
  static INLINE Floats scale(Floats p, Floats t) {
    const Ints n = _mm256_cvtps_epi32(_mm256_floor_ps(t));
    return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(p), _mm256_slli_epi32(n, 23)));
  }
  // round(x) + zero, within 0 … limit, as bytes.
  static INLINE void store_bytes(uint8_t* p, Floats x, int32_t zero, int32_t limit) {
    const Ints rounded = _mm256_min_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(x), set_ints(zero)), set_ints(limit));
    const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
  }
  // Without VNNI: products of unsigned and signed bytes in pairs of 16 bits, which inputs up to 128 cannot overflow.
  static constexpr int kInt8Limit = 127, kInt8Most = 128;
  static INLINE Ints dot(Ints sum, Ints inputs, Ints weights) {
    const Ints pairs = _mm256_maddubs_epi16(inputs, weights);
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }

 private:
  static INLINE Ints first(int64_t count) {
    const Ints lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(set_ints(static_cast<int32_t>(count)), lanes);
  }
};

}  // namespace
