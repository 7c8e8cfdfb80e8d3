// Grouped GEMM of many tokens per expert on Hopper, directly from MXFP4 tiles: 128 weight rows by up to 256
// tokens with wgmma. Operand a is the weights, decoded in registers by the consumer warp that multiplies
// them; operand b is the tokens, in shared memory. Decoding gpt-oss-20b's experts to memory first would cost
// 3.2 GB of traffic per layer.
//
// A lane decodes eight neighboring columns at a time, but in a step of sixteen the instruction expects
// columns 2t, 2t + 1, 2t + 8 and 2t + 9 from lane t. The order of columns is free as long as both operands
// agree, so the tokens' columns are permuted: by arrange_choices(), and by the gated product when it writes
// its results.
#include "backend/cuda/kernels/experts/gemm_coded.cuh"

#include <algorithm>

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

using namespace coded;

struct Epilogue {
  const Arguments& call;
  const Tile& tile;
  const Smem& smem;
  const int warp, lane;  // of the consumers
  const std::uint32_t turn;

  __device__ float bias_at(int row) const { return call.bias_at(tile.expert, row); }

  // Calls use with the sums of rows g and g + 8 of a pair, for tokens 8 j + 2 t and 8 j + 2 t + 1.
  template <class Use>
  __device__ void for_each(const float (&sums)[32], int first, const Use& use) const {
#pragma unroll
    for (int j = 0; j < batch / 8; ++j) {
      const int token = first + 8 * j + 2 * (lane % 4);
      if (first + 8 * j >= tile.tokens) return;
      use(token, sums[4 * j], sums[4 * j + 2]);
      use(token + 1, sums[4 * j + 1], sums[4 * j + 3]);
    }
  }
  template <class Use>
  __device__ void for_each(const Sums& sums, const Use& use) const {
    for_each(sums.first, 0, use);
    for_each(sums.second, batch, use);
    for_each(sums.third, 2 * batch, use);
    for_each(sums.fourth, 3 * batch, use);
  }

  // The elements of a token are spread over several warps: they are collected in shared memory and stored as
  // rows of 128 bytes.
  __device__ void write_activated(const Sums& sums) const {
    const int element = 8 * warp + lane / 4, row = 8 * tile.first_pair + element;
    const float gate_bias = bias_at(row), up_bias = bias_at(call.rows + row);
    std::byte* results = smem.results();
    std::byte* to = results + 2 * place_of(element);
    mbarrier_wait(smem.results_empty(), turn ^ 1u);
    for_each(sums, [&](int token, float gate, float up) {
      const float value = call.gate(gate + gate_bias, up + up_bias);
      *reinterpret_cast<__nv_bfloat16*>(to + token * result_stride) = __float2bfloat16_rn(value);
    });
    __syncwarp();
    mbarrier_arrive_warp(smem.results_full(), lane);
    mbarrier_wait(smem.results_full(), turn);
    std::byte* out = call.out + (std::int64_t{tile.first} * call.out_cols + 8 * tile.first_pair) * 2;
    for (int i = 32 * warp + lane; i < 8 * tile.tokens; i += groups * group_threads) {
      const int token = i / 8, unit = i % 8 * 16;
      *reinterpret_cast<uint4*>(out + std::int64_t{token} * call.out_cols * 2 + unit) =
          *reinterpret_cast<const uint4*>(results + token * result_stride + unit);
    }
    __syncwarp();
    mbarrier_arrive_warp(smem.results_empty(), lane);
  }

  __device__ void write(const Sums& sums) const {
    const int first = 16 * (tile.first_pair + warp) + lane / 4, second = first + 8;
    const bool has_first = first < call.rows, has_second = second < call.rows;
    const float first_bias = has_first ? bias_at(first) : 0.0f,
                second_bias = has_second ? bias_at(second) : 0.0f;
    auto* out = reinterpret_cast<float*>(call.out) + std::int64_t{tile.first} * call.out_cols + first;
    for_each(sums, [&](int token, float a, float b) {
      if (token >= tile.tokens) return;
      float* at = out + std::int64_t{token} * call.out_cols;
      if (has_first) at[0] = a + first_bias;
      if (has_second) at[8] = b + second_bias;
    });
  }
};

template <bool Gated>
__global__ void __launch_bounds__(threads, 1) coded_kernel(const __grid_constant__ Arguments call) {
  extern __shared__ __align__(1024) std::byte start[];
  const Smem smem = {start};
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      mbarrier_init(smem.full(s), producers);
      mbarrier_init(smem.empty(s), pairs * warp_arrivals);
    }
    mbarrier_init(smem.results_full(), pairs * warp_arrivals);
    mbarrier_init(smem.results_empty(), pairs * warp_arrivals);
    fence_proxy_async();
  }
  wait_for_previous();
  let_next_start();
  __syncthreads();
  const TileScheduler scheduler(call, (call.rows + (Gated ? 7 : 15)) / (Gated ? 8 : 16));
  const int warp = static_cast<int>(threadIdx.x) / 32 - group_threads / 32;
  if (warp < 0) {
    setmaxnreg_dec<40>();
    if (threadIdx.x % 32 != 0) return;
    Producer<Gated> producer = {call, smem, static_cast<int>(threadIdx.x) / 32};
    for (int i = static_cast<int>(blockIdx.x); i < scheduler.total; i += static_cast<int>(gridDim.x)) {
      producer.fill(scheduler.tile(call, i));
    }
    return;
  }
  setmaxnreg_inc<232>();
  Consumer<Gated> consumer(smem, warp);
  std::uint32_t turn = 0;
  for (int i = static_cast<int>(blockIdx.x); i < scheduler.total;
       i += static_cast<int>(gridDim.x), turn ^= 1u) {
    const Tile tile = scheduler.tile(call, i);
    const int filled = __shfl_sync(full_warp, batches_of(tile), 0);  // makes it warp-uniform
    const int steps = call.cols / tile_k;
    Sums sums;
    consumer.multiply(sums, steps, filled);
    const Epilogue epilogue = {call, tile, smem, warp, static_cast<int>(threadIdx.x) % 32, turn};
    if constexpr (Gated) {
      epilogue.write_activated(sums);
    } else {
      epilogue.write(sums);
    }
  }
}

template <bool Gated>
void start(const Queue& queue, const WeightView& weight, const std::byte* up, int rows,
           const CodedProduct& product, const Gate& gate) {
  const auto kernel = coded_kernel<Gated>;
  Arguments arguments = arguments_of(product, weight, rows, pairs, gate);
  arguments.weight_map = map_weights(weight, weight.data, rows, {.tiles = pairs});
  arguments.up_map = map_weights(weight, up, rows, {.tiles = pairs});
  arguments.token_map = map_rows(product.in, batch);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  launch(queue,
         {.grid = dim3(static_cast<unsigned>(queue.multiprocessors)),
          .threads = threads,
          .shared = shared_bytes},
         kernel, arguments);
}

}  // namespace

void coded_gated(const Queue& queue, std::span<const WeightView> gate_up, const CodedProduct& product,
                 const ActivationSpec& activation) {
  const WeightView& gate = gate_up.front();
  const int hidden = product.out.cols;
  start<true>(queue, gate, gate_up.size() == 2 ? gate_up[1].data : gate.from_row(hidden), hidden, product,
              gate_of(activation));
}

void coded_plain(const Queue& queue, const WeightView& weight, const CodedProduct& product) {
  start<false>(queue, weight, weight.data, weight.rows, product, {});
}

}  // namespace inferno::cuda
