// The first CUDA device, with its usual activations and with float activations, which show errors that
// rounding would hide. Linked into a separate program with the label `gpu`.
#include "backend/cuda/cuda_backend.h"
#include "ops/backends.h"

namespace inferno {

std::vector<std::string> backend_names() {
  return {"cuda_bf16_1", "cuda_f32_1"};
}

std::unique_ptr<Backend> make_backend(const std::string& name) {
  return make_cuda_backend(0, name == "cuda_f32_1" ? DType::f32 : DType::bf16);
}

}  // namespace inferno
