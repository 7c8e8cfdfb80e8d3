// How far a result may be from the reference, stated once: the relative L2 distance, by the type that
// activations (or the cache) are kept in. f32 leaves room for another order of summation and nothing more.
#pragma once

#include "tensor/matrix.h"

namespace inferno {

constexpr double relative_tolerance(DType type) {
  switch (type) {
    case DType::f32: return 1e-4;
    case DType::f16: return 2e-3;
    case DType::bf16: return 1e-2;
    case DType::i32: return 0.0;
  }
  return 0.0;
}

}  // namespace inferno
