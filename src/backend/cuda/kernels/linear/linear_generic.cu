// The reference implementation of linear in CUDA: any format, any shape, float or bf16 activations, float
// arithmetic. A block per weight row and eight tokens, so that a row is decoded once for all of them. It
// serves what the fast kernels do not take, and routers, which read float inputs.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/for_layout.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {
namespace {

constexpr int tokens_at_once = 8;
constexpr int warps = 4;

struct GenericCall {
  Elements out, in;
  const float* bias;
  std::int64_t bias_stride;
  const std::int32_t *experts, *column_order;
  int rows_between, cols, column, out_cols, tokens, in_divisor;
};

template <class Reader>
__global__ void __launch_bounds__(32 * warps) generic_kernel(const Reader weight, const GenericCall call) {
  __shared__ float smem[warps][tokens_at_once];
  wait_for_previous();
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), row = static_cast<int>(blockIdx.x);
  const int each = call.experts == nullptr ? tokens_at_once : 1;
  const int first = static_cast<int>(blockIdx.y) * each;
  const int tokens = min(each, call.tokens - first);
  const std::int64_t expert = call.experts == nullptr ? 0 : call.experts[first];
  float sums[tokens_at_once] = {};
  for (int k = 8 * thread; k < call.cols; k += 8 * 32 * warps) {
    const int count = min(8, call.cols - k);
    float values[8];
    weight.decode(values, expert * call.rows_between + row, k, count);
#pragma unroll
    for (int t = 0; t < tokens_at_once; ++t) {
      if (t >= tokens) break;
      float in[8];
      const std::int64_t at = std::int64_t{(first + t) / call.in_divisor} * call.cols;
      if (call.column_order == nullptr) {
        call.in.get_run(in, at + k, count);
      } else {  // of weights in blocks, whose runs are complete
        const std::int32_t* columns = call.column_order + expert * call.cols + k;
#pragma unroll
        for (int i = 0; i < 8; ++i) in[i] = call.in.get(at + columns[i]);
      }
#pragma unroll
      for (int i = 0; i < 8; ++i) sums[t] += values[i] * in[i];
    }
  }
#pragma unroll
  for (int t = 0; t < tokens_at_once; ++t) {
    if (t >= tokens) break;
    const float sum = warp_sum(sums[t]);
    if (thread % 32 == 0) smem[thread / 32][t] = sum;
  }
  __syncthreads();
  if (thread >= tokens) return;
  float sum = call.bias == nullptr ? 0.0f : call.bias[expert * call.bias_stride + call.column + row];
  for (int warp = 0; warp < warps; ++warp) sum += smem[warp][thread];
  call.out.put(std::int64_t{first + thread} * call.out_cols + call.column + row, sum);
}

}  // namespace

void linear_generic(const Queue& queue, const WeightView& weight, const Product& product) {
  GenericCall call = {.out = elements_of(product.out),
                      .in = elements_of(product.in),
                      .bias = product.bias,
                      .bias_stride = product.bias_stride,
                      .experts = product.experts,
                      .column_order = weight.column_order,
                      .rows_between = weight.rows_between,
                      .cols = weight.cols,
                      .column = product.column,
                      .out_cols = product.out.cols,
                      .tokens = product.out.rows,
                      .in_divisor = product.in_divisor};
  const int each = product.experts == nullptr ? tokens_at_once : 1;
  const dim3 grid(static_cast<unsigned>(weight.rows), blocks_for(product.out.rows, each));
  for_layout(weight, [&]<class R>(const R& reader) {
    launch(queue, {.grid = grid, .threads = 32 * warps}, generic_kernel<R>, reader, call);
  });
}

}  // namespace inferno::cuda
