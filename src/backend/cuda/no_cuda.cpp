// Linked instead of the CUDA backend in builds without it: asking for the device is an error with a reason,
// never another device.
#include "backend/backend.h"
#include "backend/cuda/probe.h"
#include "base/error.h"

namespace inferno {

std::unique_ptr<Backend> make_cuda_backend(int /*device*/, int /*threads*/) {
  fail(ErrorKind::device, "--device cuda: there is no CUDA backend in this program",
       {.why = "it was built without nvcc, or without -DINFERNO_CUDA=ON",
        .next = "build with `cmake --preset cuda`, or use --device cpu"});
}

bool cuda_is_usable() {
  return false;
}

std::optional<std::string> cuda::self_check(int /*device*/) {
  return "there is no CUDA backend in this program";
}

}  // namespace inferno
