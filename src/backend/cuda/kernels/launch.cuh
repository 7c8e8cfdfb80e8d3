// Launches with programmatic dependent launch (PDL): a kernel may start while its predecessor still runs.
// Every kernel must call wait_for_previous() before it touches anything that another kernel writes:
// completion is transitive only if all of them wait. Three read earlier and say why they may:
// read_choice_early() in stream_producer.cuh, the plain products of grouped.cuh, and attention_decode.cu.
// docs/kernels.md lists the protocols.
#pragma once

#include <cuda_runtime.h>

#include <array>

#include "backend/cuda/check.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

struct Shape {
  dim3 grid = {1, 1, 1};
  unsigned threads = 128;
  std::size_t shared = 0;
  unsigned cluster = 1;  // blocks along y that form a cluster
};

template <class... Parameters, class... Arguments>
void launch(const Queue& queue, const Shape& shape, void (*kernel)(Parameters...),
            const Arguments&... arguments) {
  if (shape.grid.x == 0 || shape.grid.y == 0 || shape.grid.z == 0) return;
  std::array<cudaLaunchAttribute, 2> attributes = {};
  unsigned used = 0;
  if (queue.overlaps) {
    attributes[used].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attributes[used++].val.programmaticStreamSerializationAllowed = 1;
  }
  if (shape.cluster > 1) {
    attributes[used].id = cudaLaunchAttributeClusterDimension;
    attributes[used++].val.clusterDim = {.x = 1, .y = shape.cluster, .z = 1};
  }
  cudaLaunchConfig_t config = {};
  config.gridDim = shape.grid;
  config.blockDim = dim3(shape.threads);
  config.dynamicSmemBytes = shape.shared;
  config.stream = queue.stream;
  config.attrs = attributes.data();
  config.numAttrs = used;
  check(cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...));
}

// All earlier kernels have completed and their results are visible.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel start in the resources that this one leaves free.
__device__ inline void let_next_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

constexpr unsigned blocks_for(long long count, long long each) {
  return static_cast<unsigned>((count + each - 1) / each);
}

}  // namespace inferno::cuda
