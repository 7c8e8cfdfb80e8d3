// Small uploads as kernel parameters: they arrive with the launch, where a copy would go through the copy
// engine. This kernel never lets its successor start early: some kernels read these words before they wait.
#include <algorithm>
#include <cstring>

#include "backend/cuda/kernels/elementwise/elementwise.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int put_threads = 128;
constexpr int few_words = 256, max_words = 1000;  // 4 KiB of parameters are supported everywhere

template <int words>
struct Words {
  std::uint32_t of[words];
};

template <int words>
__global__ void __launch_bounds__(put_threads)
    put_kernel(std::uint32_t* to, int count, const __grid_constant__ Words<words> values) {
  wait_for_previous();
  const int i = static_cast<int>(blockIdx.x * put_threads + threadIdx.x);
  if (i < count) to[i] = values.of[i];
  __threadfence();
}

template <int words>
void put_words(const Queue& queue, std::byte* to, std::span<const std::byte> from) {
  Words<words> values = {};
  std::memcpy(values.of, from.data(), from.size());
  const auto count = static_cast<int>(from.size() / sizeof(std::uint32_t));
  launch(queue, {.grid = blocks_for(count, put_threads), .threads = put_threads}, put_kernel<words>,
         reinterpret_cast<std::uint32_t*>(to), count, values);
}

}  // namespace

bool can_put(const std::byte* to, std::size_t bytes) {
  constexpr std::size_t word = sizeof(std::uint32_t);
  return bytes > 0 && bytes <= sizeof(Words<max_words>) && bytes % word == 0 &&
         reinterpret_cast<std::uintptr_t>(to) % word == 0;
}

void put(const Queue& queue, std::byte* to, std::span<const std::byte> from) {
  if (from.size() <= sizeof(Words<few_words>)) return put_words<few_words>(queue, to, from);
  put_words<max_words>(queue, to, from);
}

}  // namespace inferno::cuda
