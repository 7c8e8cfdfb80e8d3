// Tensor maps: descriptions of tensors in device memory for TMA copies (device/tma.cuh). They are
// kernel arguments.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "tensor/matrix.h"

namespace inferno::cuda {

struct TensorShape {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  cuuint32_t rank = 2;                               // at most 3
  cuuint64_t sizes[3] = {1, 1, 1}, strides[2] = {};  // innermost first; strides in bytes, from the second on
  cuuint32_t box[3] = {1, 1, 1};                     // the elements of one copy
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// Error{device} if the driver has no tensor maps or rejects the shape. `data` and strides are multiples
// of 16.
CUtensorMap tensor_map(const std::byte* data, const TensorShape& shape);
// Rows of bf16: a copy brings 64 columns of `box_rows` rows, in the 128-byte swizzle.
CUtensorMap map_rows(const Matrix& rows, int box_rows);

}  // namespace inferno::cuda
