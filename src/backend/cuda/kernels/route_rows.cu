// A router and what stands around it, in one kernel for rows that experts multiply next: the logits, the
// choice, and the row itself in two bytes an element. A block for each token, bound by latency: all of it
// stays on the multiprocessor, the router's weights come from L2.
#include <cuda_fp16.h>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/choose.cuh"
#include "backend/cuda/kernels/for_layout.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int threads = 512;

struct RouteCall {
  Elements in;
  std::byte* narrow;
  float* factors;  // null: narrow is bf16, otherwise f16 times these
  const float* bias;
  std::int32_t* experts;
  float* shares;
  int cols, count, active;
  bool renormalizes;
};

// The power of two that brings the largest value close to where f16 ends; its inverse is exact as well.
__device__ float factor_for(float largest) {
  const int exponent = static_cast<int>(__float_as_uint(largest) >> 23) - 127;
  return largest > 0.0f ? __uint_as_float(static_cast<std::uint32_t>(max(exponent - 14, -126) + 127) << 23)
                        : 1.0f;
}

__device__ void write_narrow(const RouteCall& call, const float* row, std::int64_t token, float factor) {
  const float inverse = 1.0f / factor;
  for (int k = 2 * static_cast<int>(threadIdx.x); k < call.cols; k += 2 * threads) {
    const std::int64_t at = (token * call.cols + k) / 2;
    if (call.factors != nullptr) {
      reinterpret_cast<__half2*>(call.narrow)[at] = __floats2half2_rn(row[k] * inverse, row[k + 1] * inverse);
    } else {
      reinterpret_cast<std::uint32_t*>(call.narrow)[at] = packed(row[k], row[k + 1]);
    }
  }
  if (call.factors != nullptr && threadIdx.x == 0) call.factors[token] = factor;
}

template <class Reader>
__device__ float logit_of(const Reader& router, const float* row, int cols, int expert, int lane) {
  float sum = 0.0f;
#pragma unroll 4
  for (int k = 8 * lane; k < cols; k += 8 * 32) {
    float values[8];
    router.decode(values, expert, k, 8);
    const float4 a = *reinterpret_cast<const float4*>(row + k),
                 b = *reinterpret_cast<const float4*>(row + k + 4);
    sum += values[0] * a.x + values[1] * a.y + values[2] * a.z + values[3] * a.w;
    sum += values[4] * b.x + values[5] * b.y + values[6] * b.z + values[7] * b.w;
  }
  return warp_sum(sum);
}

template <class Reader>
__global__ void __launch_bounds__(threads) route_rows_kernel(const Reader router, const RouteCall call) {
  extern __shared__ __align__(16) float row[];  // [cols], then [count] logits
  __shared__ float largest_of[threads / 32];
  float* logits = row + call.cols;
  wait_for_previous();
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const std::int64_t token = blockIdx.x;
  float largest = 0.0f;
  for (int k = 8 * thread; k < call.cols; k += 8 * threads) {
    float values[8];
    call.in.get_run(values, token * call.cols + k, 8);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      row[k + i] = values[i];
      largest = fmaxf(largest, fabsf(values[i]));
    }
  }
  largest = warp_max(largest);
  if (lane == 0) largest_of[warp] = largest;
  __syncthreads();
  for (int e = warp; e < call.count; e += threads / 32) {
    const float sum = logit_of(router, row, call.cols, e, lane);
    if (lane == 0) logits[e] = sum + (call.bias == nullptr ? 0.0f : call.bias[e]);
  }
  write_narrow(call, row, token, factor_for(warp_max(largest_of[lane % (threads / 32)])));
  __syncthreads();
  if (warp != 0) return;
  choose_experts(call.experts + token * call.active, call.shares + token * call.active,
                 {logits, call.count, call.active, call.renormalizes}, lane);
}

}  // namespace

bool route_takes_rows(const WeightView& router) {
  constexpr int most_bytes = 46 << 10;
  return router.cols % 8 == 0 && (router.cols + router.rows) * static_cast<int>(sizeof(float)) <= most_bytes;
}

void route_rows(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec) {
  const RouteCall call = {.in = elements_of(rows.in),
                          .narrow = rows.narrow.data,
                          .factors = rows.narrow.dtype == DType::f16 ? rows.factors : nullptr,
                          .bias = rows.bias,
                          .experts = rows.experts,
                          .shares = rows.shares,
                          .cols = rows.in.cols,
                          .count = spec.experts,
                          .active = spec.active,
                          .renormalizes = spec.renormalize};
  const auto floats = static_cast<std::size_t>(rows.in.cols + spec.experts);
  for_layout(router, [&]<class R>(const R& reader) {
    launch(queue,
           {.grid = dim3(static_cast<unsigned>(rows.in.rows)), .threads = threads, .shared = 4 * floats},
           route_rows_kernel<R>, reader, call);
  });
}

}  // namespace inferno::cuda
