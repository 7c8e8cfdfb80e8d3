// Reductions over a block of 1024 threads, each in one fixed order. Every thread gets the result.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace inferno::cuda {

// Any plain record of 32-bit words, under any function that may be applied in any grouping.
template <class Record, class Combine>
__device__ Record block_reduce(Record value, const Combine& combine) {
  static_assert(sizeof(Record) % 4 == 0);
  constexpr int words = sizeof(Record) / 4;
  __shared__ Record room[32];
  const auto from_lane = [](const Record& record, int offset) {
    Record other;
    const auto* in = reinterpret_cast<const std::uint32_t*>(&record);
    auto* out = reinterpret_cast<std::uint32_t*>(&other);
#pragma unroll
    for (int i = 0; i < words; ++i) out[i] = __shfl_xor_sync(0xFFFFFFFFu, in[i], offset);
    return other;
  };
  for (int offset = 16; offset > 0; offset >>= 1) value = combine(value, from_lane(value, offset));
  __syncthreads();  // whoever read the room before is done
  if (threadIdx.x % 32 == 0) room[threadIdx.x / 32] = value;
  __syncthreads();
  value = room[threadIdx.x % 32];
  for (int offset = 16; offset > 0; offset >>= 1) value = combine(value, from_lane(value, offset));
  return value;
}

__device__ inline double block_sum(double value) {
  return block_reduce(value, [](double a, double b) { return a + b; });
}

// How many threads before this one say yes, and how many of all.
__device__ inline int place_in_block(bool yes, int& all) {
  __shared__ int counts[32];
  const unsigned votes = __ballot_sync(0xFFFFFFFFu, yes);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  __syncthreads();
  if (lane == 0) counts[warp] = __popc(votes);
  __syncthreads();
  int before = 0;
  all = 0;
  for (unsigned w = 0; w < 32; ++w) {
    before += w < warp ? counts[w] : 0;
    all += counts[w];
  }
  return before + __popc(votes & ((1u << lane) - 1u));
}

}  // namespace inferno::cuda
