#include "vectors_avx512.h"
//
#include "operations.h"

namespace {

struct Avx512Vnni : Avx512 {
  static constexpr int kInt8Limit = 255, kInt8Most = 255;
  // Not by the intrinsic: GCC would copy every sum from register to register.
  static INLINE Ints dot(Ints sum, Ints inputs, Ints weights) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(inputs), "v"(weights));
    return sum;
  }
  // The same bytes with fewer instructions: signed ones saturate, then the highest bit is turned.
  static INLINE void store_bytes(uint8_t* p, Floats x, int32_t, int32_t) {
    const __m128i bytes = _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(x));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm_xor_si128(bytes, _mm_set1_epi8(-128)));
  }
};

}  // namespace

const Operations avx512vnni_int8 = operations<Int8<Avx512Vnni>>();
