#include "vectors_avx2.h"
//
#include "operations.h"

const Operations avx2_float32 = operations<Float32<Avx2>>();
const Operations avx2_int8 = operations<Int8<Avx2>>();
