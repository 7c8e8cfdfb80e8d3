// Linked instead of the CUDA backend in builds without it: asking for the device is an error with a reason,
// never another device.
#include "backend/backend.h"
#include "base/error.h"

namespace inferno {

std::unique_ptr<Backend> make_cuda_backend(int /*device*/) {
  fail(ErrorKind::unsupported, "this program was built without CUDA",
       {.why = "it was configured with INFERNO_CUDA=OFF",
        .next = "use --device cpu, or build with `cmake --preset cuda`"});
}

bool cuda_is_usable() {
  return false;
}

}  // namespace inferno
