#include "vectors_avx2.h"
//
#include "operations.h"

namespace {

struct AvxVnni : Avx2 {
  static constexpr int kInt8Rows = 3, kInt8Limit = 255, kInt8Most = 255;
  // Not by the intrinsic: GCC would copy every sum from register to register.
  static INLINE Ints dot(Ints sum, Ints inputs, Ints weights) {
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum) : "x"(inputs), "xm"(weights));
    return sum;
  }
};

}  // namespace

const Operations avxvnni_int8 = operations<Int8<AvxVnni>>();
