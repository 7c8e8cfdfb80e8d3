// add_norm: one block for each row. A row is a few kilobytes, so this is bound by latency: every element is
// read once, kept in a register and written once. What is added may be a mixture's rows.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct NormCall {
  Elements out, residual, delta;
  const float *gain, *bias;
  const float* shares;         // of a mixture, whose rows are the delta
  const std::int32_t* places;  // null: in order
  int active;                  // 0: the delta is one row
  int width;
  float scale, epsilon;
  bool centred;
};

// The rows that a token's delta is the sum of.
struct Delta {
  std::int64_t rows[most_active_experts];
  float shares[most_active_experts];

  __device__ void find(const NormCall& call) {
    const int k = static_cast<int>(threadIdx.x);
    if (k < call.active) {
      const std::int64_t choice = std::int64_t{blockIdx.x} * call.active + k;
      rows[k] = (call.places == nullptr ? choice : call.places[choice]) * call.width;
      shares[k] = call.shares[choice];
    }
    if (call.active > 0) __syncthreads();
  }
  __device__ float at(const NormCall& call, int column) const {
    if (call.active == 0) return call.delta.get(std::int64_t{blockIdx.x} * call.width + column);
    float sum = 0.0f;
#pragma unroll 4
    for (int k = 0; k < call.active; ++k) sum += shares[k] * call.delta.get(rows[k] + column);
    return sum;
  }
};

template <int Kept>
__global__ void __launch_bounds__(1024) add_norm_kernel(const NormCall call) {
  __shared__ float room[32];
  __shared__ Delta delta;
  wait_for_previous();
  let_next_start();
  delta.find(call);
  const std::int64_t row = std::int64_t{blockIdx.x} * call.width;
  const int threads = static_cast<int>(blockDim.x), first = static_cast<int>(threadIdx.x);
  float kept[Kept];
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < Kept; ++i) {
    const int c = first + i * threads;
    kept[i] = 0.0f;
    if (c >= call.width) continue;
    kept[i] = call.residual.get(row + c);
    if (call.delta.data != nullptr) {
      kept[i] += call.scale * delta.at(call, c);
      call.residual.put(row + c, kept[i]);
    }
    sum += kept[i];
  }
  if (call.out.data == nullptr) return;
  const float mean = call.centred ? block_sum(sum, room) / static_cast<float>(call.width) : 0.0f;
  float square = 0.0f;
#pragma unroll
  for (int i = 0; i < Kept; ++i) {
    if (first + i * threads < call.width) square += (kept[i] - mean) * (kept[i] - mean);
  }
  const float inverse = rsqrtf(block_sum(square, room) / static_cast<float>(call.width) + call.epsilon);
#pragma unroll
  for (int i = 0; i < Kept; ++i) {
    const int c = first + i * threads;
    if (c >= call.width) continue;
    const float value = (kept[i] - mean) * inverse * call.gain[c];
    call.out.put(row + c, call.bias == nullptr ? value : value + call.bias[c]);
  }
}

NormCall norm_call(Matrix out, Matrix residual, float scale, const Norm& norm) {
  return {.out = elements_of(out),
          .residual = elements_of(residual),
          .delta = {},
          .gain = floats_of(norm.gain),
          .bias = floats_of(norm.bias),
          .shares = nullptr,
          .places = nullptr,
          .active = 0,
          .width = residual.cols,
          .scale = scale,
          .epsilon = norm.epsilon,
          .centred = norm.kind == NormKind::layer};
}

void launch_norm(const Queue& queue, const NormCall& call, int rows) {
  const int threads = std::min(1024, (call.width + 31) / 32 * 32);
  const Shape shape = {.grid = dim3(static_cast<unsigned>(rows)), .threads = static_cast<unsigned>(threads)};
  if (call.width <= 4 * threads) return launch(queue, shape, add_norm_kernel<4>, call);
  if (call.width <= 16 * threads) return launch(queue, shape, add_norm_kernel<16>, call);
  launch(queue, shape, add_norm_kernel<64>, call);
}

}  // namespace

void add_norm(const Queue& queue, Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) {
  NormCall call = norm_call(out, residual, scale, norm);
  call.delta = elements_of(delta);
  launch_norm(queue, call, residual.rows);
}

void combine_add_norm(const Queue& queue, Matrix out, Matrix residual, const MixedRows& mixed, float scale,
                      const Norm& norm) {
  NormCall call = norm_call(out, residual, scale, norm);
  call.delta = elements_of(mixed.rows);
  call.shares = mixed.shares;
  call.places = mixed.places;
  call.active = mixed.active;
  launch_norm(queue, call, residual.rows);
}

}  // namespace inferno::cuda
