#include "backend/cuda/check.h"

#include <fmt/format.h>

#include "base/error.h"

namespace inferno::cuda {

void check(cudaError_t status, std::source_location at) {
  if (status == cudaSuccess) return;
  const bool sticky = status != cudaErrorMemoryAllocation && status != cudaErrorInvalidValue;
  fail(ErrorKind::device,
       fmt::format("CUDA: {} ({}) at {}:{}", cudaGetErrorString(status), cudaGetErrorName(status),
                   at.file_name(), at.line()),
       {.why = sticky ? "the GPU can no longer be used by this process" : "",
        .next = "restart; if it happens again, run `inferno doctor` and report the command that led here"});
}

}  // namespace inferno::cuda
