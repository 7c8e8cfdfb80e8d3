// Descriptions of tensors in device memory for Hopper's background copies (device/tma.cuh). They
// travel in a kernel's arguments.
#pragma once

#include <cuda.h>

#include <cstddef>

#include "tensor/matrix.h"

namespace inferno::cuda {

struct TensorShape {
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  cuuint32_t rank = 2;                               // at most 3
  cuuint64_t sizes[3] = {1, 1, 1}, strides[2] = {};  // innermost first; strides in bytes, from the second on
  cuuint32_t box[3] = {1, 1, 1};                     // what one copy brings
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
};

// Fails (Error{device}) where the driver has no such maps or does not like the shape. `data` and strides are
// multiples of 16.
CUtensorMap tensor_map(const std::byte* data, const TensorShape& shape);
// Of rows of bf16, `box_rows` at a time and 64 columns of each, in the 128-byte exchange.
CUtensorMap map_rows(const Matrix& rows, int box_rows);

}  // namespace inferno::cuda
