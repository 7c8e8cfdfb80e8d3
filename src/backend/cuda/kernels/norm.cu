// add_norm: one block for each row. A row is a few kilobytes, so this is bound by latency: every element is
// read once, kept in a register and written once.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct NormCall {
  Elements out, residual, delta;
  const float *gain, *bias;
  int width;
  float scale, epsilon;
  bool centred;
};

template <int Kept>
__global__ void __launch_bounds__(1024) add_norm_kernel(const NormCall call) {
  __shared__ float room[32];
  wait_for_previous();
  let_next_start();
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
      kept[i] += call.scale * call.delta.get(row + c);
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

}  // namespace

void add_norm(const Queue& queue, Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) {
  const NormCall call = {.out = elements_of(out),
                         .residual = elements_of(residual),
                         .delta = elements_of(delta),
                         .gain = floats_of(norm.gain),
                         .bias = floats_of(norm.bias),
                         .width = residual.cols,
                         .scale = scale,
                         .epsilon = norm.epsilon,
                         .centred = norm.kind == NormKind::layer};
  const int threads = std::min(1024, (residual.cols + 31) / 32 * 32);
  const Shape shape = {.grid = dim3(static_cast<unsigned>(residual.rows)),
                       .threads = static_cast<unsigned>(threads)};
  if (residual.cols <= 4 * threads) return launch(queue, shape, add_norm_kernel<4>, call);
  if (residual.cols <= 16 * threads) return launch(queue, shape, add_norm_kernel<16>, call);
  launch(queue, shape, add_norm_kernel<64>, call);
}

}  // namespace inferno::cuda
