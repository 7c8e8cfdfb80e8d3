// Typed access to the rows of a Matrix in host memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/matrix.h"

namespace inferno::cpu {

inline float* floats(const Matrix& matrix, std::int64_t row = 0) {
  return reinterpret_cast<float*>(matrix.data) + row * matrix.cols;
}

inline const std::int32_t* integers(const Matrix& matrix, std::int64_t row = 0) {
  return reinterpret_cast<const std::int32_t*>(matrix.data) + row * matrix.cols;
}

}  // namespace inferno::cpu
