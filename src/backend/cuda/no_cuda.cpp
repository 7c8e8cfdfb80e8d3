// Linked instead of the CUDA backend in builds without it: asking for the device is an error with a reason,
// never another device.
#include "backend/backend.h"
#include "backend/cuda/probe.h"
#include "base/error.h"

namespace inferno {

std::unique_ptr<Backend> make_cuda_backend(int /*device*/, int /*threads*/) {
  fail(ErrorKind::device, "--device cuda: this program was built without the CUDA backend",
       {.why = "nvcc was missing, or -DINFERNO_CUDA=ON was not set",
        .next = "build with `cmake --preset cuda`, or use --device cpu"});
}

bool cuda_is_usable() {
  return false;
}

std::optional<std::string> cuda::self_check(int /*device*/) {
  return "this program was built without the CUDA backend";
}

}  // namespace inferno
