#include "engine/counted_allocations.h"

#include <cuda_runtime_api.h>

namespace inferno::testing {

Allocations& allocations() {
  static Allocations one;
  return one;
}

// The names that `ld --wrap=SYMBOL` calls and offers.
extern "C" {
cudaError_t real_malloc(void** data, std::size_t bytes) asm("__real_cudaMalloc");
cudaError_t real_malloc_async(void** data, std::size_t bytes,
                              cudaStream_t stream) asm("__real_cudaMallocAsync");
cudaError_t real_host_alloc(void** data, std::size_t bytes, unsigned flags) asm("__real_cudaHostAlloc");
cudaError_t counted_malloc(void** data, std::size_t bytes) asm("__wrap_cudaMalloc");
cudaError_t counted_malloc_async(void** data, std::size_t bytes,
                                 cudaStream_t stream) asm("__wrap_cudaMallocAsync");
cudaError_t counted_host_alloc(void** data, std::size_t bytes, unsigned flags) asm("__wrap_cudaHostAlloc");

cudaError_t counted_malloc(void** data, std::size_t bytes) {
  ++allocations().device;
  return real_malloc(data, bytes);
}
cudaError_t counted_malloc_async(void** data, std::size_t bytes, cudaStream_t stream) {
  ++allocations().device;
  return real_malloc_async(data, bytes, stream);
}
cudaError_t counted_host_alloc(void** data, std::size_t bytes, unsigned flags) {
  ++allocations().pinned;
  return real_host_alloc(data, bytes, flags);
}
}

}  // namespace inferno::testing
