// A kernel that only reads: eight loads of 16 bytes in flight for each of 512 threads.
#include "backend/cuda/kernels/elementwise/elementwise.h"

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/memory.h"

namespace inferno::cuda {
namespace {

constexpr int threads = 512, ahead = 8;

__global__ void __launch_bounds__(threads)
    read_kernel(const uint4* from, std::int64_t count, std::uint32_t* never) {
  wait_for_previous();
  std::uint32_t mixed = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * threads * ahead;
  for (std::int64_t first = std::int64_t{blockIdx.x} * threads * ahead + threadIdx.x; first < count;
       first += step) {
    uint4 words[ahead];
#pragma unroll
    for (int i = 0; i < ahead; ++i) {
      const std::int64_t at = first + std::int64_t{i} * threads;
      words[i] = at < count ? __ldcs(from + at) : make_uint4(0, 0, 0, 0);
    }
#pragma unroll
    for (int i = 0; i < ahead; ++i) mixed ^= words[i].x ^ words[i].y ^ words[i].z ^ words[i].w;
  }
  // Never true, because the memory is zero, but the compiler cannot know.
  if (mixed == 0x12345678u) *never = mixed;
}

}  // namespace

double read_bandwidth(const Queue& queue, DeviceMemory& memory) {
  constexpr std::size_t bytes = std::size_t{2} << 30;
  const Buffer buffer = memory.allocate(bytes, "bandwidth test");
  cudaEvent_t begin = nullptr, end = nullptr;
  check(cudaEventCreate(&begin));
  check(cudaEventCreate(&end));
  double best = 0.0;
  for (int round = 0; round < 6; ++round) {
    check(cudaEventRecord(begin, queue.stream));
    launch(queue, {.grid = dim3(static_cast<unsigned>(2 * queue.multiprocessors)), .threads = threads},
           read_kernel, reinterpret_cast<const uint4*>(buffer.data()),
           static_cast<std::int64_t>(bytes / sizeof(uint4)), reinterpret_cast<std::uint32_t*>(buffer.data()));
    check(cudaEventRecord(end, queue.stream));
    check(cudaEventSynchronize(end));
    float milliseconds = 0.0f;
    check(cudaEventElapsedTime(&milliseconds, begin, end));
    best = std::max(best, static_cast<double>(bytes) / (static_cast<double>(milliseconds) * 1e-3));
  }
  check(cudaEventDestroy(begin));
  check(cudaEventDestroy(end));
  return best;
}

}  // namespace inferno::cuda
