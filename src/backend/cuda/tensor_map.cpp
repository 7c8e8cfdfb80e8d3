#include "backend/cuda/tensor_map.h"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "backend/cuda/check.h"
#include "base/error.h"

namespace inferno::cuda {
namespace {

using Encoder = decltype(&cuTensorMapEncodeTiled);

// The runtime finds the driver's function: nothing here links against the driver.
Encoder find_encoder() {
  constexpr unsigned since = 12000;
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, since, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    fail(ErrorKind::device, "the NVIDIA driver has no cuTensorMapEncodeTiled",
         {.why = "it is older than CUDA 12", .next = "update the driver"});
  }
  return reinterpret_cast<Encoder>(entry);
}

}  // namespace

CUtensorMap tensor_map(const std::byte* data, const TensorShape& shape) {
  static const Encoder encode = find_encoder();
  constexpr cuuint32_t neighbours[3] = {1, 1, 1};
  CUtensorMap map = {};
  const CUresult result =
      encode(&map, shape.type, shape.rank, const_cast<std::byte*>(data), shape.sizes, shape.strides,
             shape.box, neighbours, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    fail(ErrorKind::device,
         fmt::format("CUDA: error {} for a tensor of {} x {} x {}", static_cast<int>(result), shape.sizes[2],
                     shape.sizes[1], shape.sizes[0]),
         {.why = "the driver rejected the description of this tensor",
          .next = "run `inferno doctor` and report the command that led here"});
  }
  return map;
}

CUtensorMap map_rows(const Matrix& rows, int box_rows) {
  const auto cols = static_cast<cuuint64_t>(rows.cols), count = static_cast<cuuint64_t>(rows.rows);
  return tensor_map(rows.data, {.rank = 2,
                                .sizes = {cols, count, 1},
                                .strides = {cols * 2, 0},
                                .box = {64, static_cast<cuuint32_t>(box_rows), 1},
                                .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

}  // namespace inferno::cuda
