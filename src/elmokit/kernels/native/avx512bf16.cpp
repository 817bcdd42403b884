#include "vectors_avx512.h"
//
#include "operations.h"

namespace {

struct Avx512BFloat16 : Avx512 {
  static INLINE Floats dot_bfloat16(Floats sum, Ints inputs, Ints weights) {
    return _mm512_dpbf16_ps(sum, (__m512bh)inputs, (__m512bh)weights);
  }
  static INLINE void store_bfloat16(uint16_t* p, Floats x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh(x));
  }
  // 16 numbers of each row, in turn: even, odd, even, …
  static INLINE Ints in_turn(const uint16_t* even, const uint16_t* odd) {
    const Ints high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(odd)));
    const Ints low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(even)));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
  }
};

}  // namespace

const Operations avx512bf16_bfloat16 = operations<BFloat16<Avx512BFloat16>>();
