// The tokens of products that decode MXFP4 in registers: a row for each place of the sorted choices, with the
// columns of each 64 permuted, because a lane decodes eight neighboring columns at a time, but in a step of
// sixteen the instruction expects columns 2t, 2t + 1, 2t + 8 and 2t + 9 from lane t. Bound by latency; for
// prompts by memory.
#include <cuda_fp16.h>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/f16.cuh"
#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/experts/coded_few.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct ArrangeCall {
  std::byte* out;
  float* factors;  // null: `out` is bf16, otherwise f16 times these
  Elements in;
  const std::int32_t* places;
  int cols, active;
};

// A thread's 16 bytes: four pairs that are 16 columns apart in the input.
__device__ void read_unit(float (&values)[8], const ArrangeCall& call, int i) {
  const std::int64_t from = std::int64_t{blockIdx.x} * call.cols + i / 8 * coded_depth + 2 * (i % 8);
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    values[2 * t] = call.in.get(from + 16 * t);
    values[2 * t + 1] = call.in.get(from + 16 * t + 1);
  }
}

__device__ uint4 narrowed(const float (&values)[8], bool is_f16, float inverse) {
  uint4 unit;
  auto* pairs = reinterpret_cast<std::uint32_t*>(&unit);
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    if (is_f16) {
      const __half2 pair = __floats2half2_rn(values[2 * t] * inverse, values[2 * t + 1] * inverse);
      pairs[t] = *reinterpret_cast<const std::uint32_t*>(&pair);
    } else {
      pairs[t] = pack_bf16x2(values[2 * t], values[2 * t + 1]);
    }
  }
  return unit;
}

__device__ float largest_of(const ArrangeCall& call, const float (&first)[8]) {
  __shared__ float of_warp[32];
  float largest = 0.0f;
#pragma unroll
  for (int j = 0; j < 8; ++j) largest = fmaxf(largest, fabsf(first[j]));
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int i = thread + threads; i < call.cols / 8; i += threads) {
    float values[8];
    read_unit(values, call, i);
#pragma unroll
    for (int j = 0; j < 8; ++j) largest = fmaxf(largest, fabsf(values[j]));
  }
  largest = warp_max(largest);
  if (thread % 32 == 0) of_warp[thread / 32] = largest;
  __syncthreads();
  return warp_max(thread % 32 < threads / 32 ? of_warp[thread % 32] : 0.0f);
}

// A block per token.
__global__ void __launch_bounds__(512) arrange_kernel(const ArrangeCall call) {
  wait_for_previous();
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), units = call.cols / 8;
  const std::int32_t* places = call.places + std::int64_t{blockIdx.x} * call.active;
  float values[8] = {};
  if (thread < units) read_unit(values, call, thread);
  const bool is_f16 = call.factors != nullptr;
  float inverse = 1.0f;
  if (is_f16) {
    const float factor = f16_factor(largest_of(call, values));
    inverse = 1.0f / factor;
    if (thread < call.active) call.factors[places[thread]] = factor;
  }
  for (int i = thread; i < units; i += static_cast<int>(blockDim.x)) {
    if (i != thread) read_unit(values, call, i);
    const uint4 unit = narrowed(values, is_f16, inverse);
    for (int k = 0; k < call.active; ++k) {
      *reinterpret_cast<uint4*>(call.out + (std::int64_t{places[k]} * call.cols + 8 * i) * 2) = unit;
    }
  }
}

void start(const Queue& queue, const Matrix& out, float* factors, const Matrix& in, const Sorted& sorted,
           int active) {
  const ArrangeCall call = {.out = out.data,
                            .factors = factors,
                            .in = elements_of(in),
                            .places = sorted.places,
                            .cols = in.cols,
                            .active = active};
  launch(queue, {.grid = dim3(static_cast<unsigned>(in.rows)), .threads = 384}, arrange_kernel, call);
}

}  // namespace

void arrange_choices(const Queue& queue, Matrix out, Matrix in, const Sorted& sorted, int active) {
  start(queue, out, nullptr, in, sorted, active);
}

void arrange_choices_f16(const Queue& queue, Matrix out, float* factors, Matrix in, const Sorted& sorted,
                         int active) {
  start(queue, out, factors, in, sorted, active);
}

}  // namespace inferno::cuda
