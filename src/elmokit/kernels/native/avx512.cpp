#include "vectors_avx512.h"
//
#include "operations.h"

const Operations avx512_float32 = operations<Float32<Avx512>>();
const Operations avx512_int8 = operations<Int8<Avx512>>();
