// Prefill attention on Hopper. A persistent block takes up to 192 queries of one sequence and one head (128
// if head_dim exceeds 64) and iterates over the visible keys, 128 at a time. Warp-specialized: one producer
// warp group; each consumer warp group has 64 queries. Scores by wgmma, online softmax in registers, and the
// attention weights stay in registers as operand a of the product with the values (transposed b). The product
// with the values overlaps the next scores; while one group computes its softmax another has the tensor
// cores.
#include "backend/cuda/kernels/attention/attention_hopper.cuh"

#include <algorithm>

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

using namespace hopper_attention;

// A consumer warp group.
template <int Dims>
struct Consumer {
  using Size = Sizes<Dims>;
  const TilesCall& call;
  const Smem<Dims>& smem;
  const int group, lane, warp;  // warp: index within the group
  int head = 0;
  Queries queries = {};     // of this group
  PipelineState keys = {};  // keys whose scores are computed next
  int values_stage = 0;     // stage of the values that match `scores`
  std::uint32_t turn = 0;
  SoftmaxState<Dims> state;
  Scores scores;
  Weights weights;

  __device__ void begin(const Queries& all, int of_head) {
    const int before = group * group_queries;
    state = {};
    head = of_head;
    queries = all;
    queries.first += before;
    queries.count = min(group_queries, all.count - before);
    if (queries.count > 0) {
      queries.first_position = call.map.positions[queries.first];
      queries.last_position = call.map.positions[queries.first + queries.count - 1];
    }
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = warp * 16 + lane / 4 + 8 * half;
      state.own[half] = row < queries.count ? call.map.positions[queries.first + row] : -1;
    }
  }

  // Barrier of the group's warps.
  __device__ void sync_group() {
    __syncwarp();
    mbarrier_arrive_warp(smem.group_barrier(group), lane);
    mbarrier_wait(smem.group_barrier(group), turn);
    turn ^= 1u;
  }
  __device__ void load_queries() {
    sync_group();  // all reads of the previous queries are done
    for (int i = 32 * warp + lane; i < group_queries * Dims / 8; i += group_threads) {
      const int row = i / (Dims / 8), unit = i % (Dims / 8);
      *reinterpret_cast<uint4*>(smem.queries(group) + unit / 8 * Size::query_half + swizzled(row, unit % 8)) =
          query_run(call, queries, row, head, unit * 8);
    }
    fence_proxy_async();
    sync_group();
  }

  __device__ void release(int stage) const {
    __syncwarp();
    mbarrier_arrive_warp(smem.empty(stage), lane);
  }
  // Skips tiles that this group does not see, in step with the other groups.
  __device__ void pass(int tiles) {
    for (int i = 0; i < tiles; ++i) {
      mbarrier_wait(smem.full(keys.stage), keys.parity);
      release(keys.stage);
      keys.advance(Size::stages);
    }
  }

  __device__ void wait_for_keys() const {
    mbarrier_wait(smem.full(keys.stage), keys.parity);
    fence_proxy_async();  // rows were written by cp.async
    __syncwarp();
  }
  __device__ void start_scores() {
    const std::uint64_t q = wgmma_descriptor(smem.queries(group), Swizzle::bytes_128, 1024);
    const std::uint64_t k = wgmma_descriptor(smem.keys(keys.stage), Swizzle::bytes_128, 1024);
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < Dims / 16; ++step) {
      const std::uint32_t further = 32 * (step % 4);
      wgmma(scores, q + descriptor_offset(step / 4 * Size::query_half + further),
            k + descriptor_offset(step / 4 * Size::key_half + further), step > 0);
    }
  }
  __device__ void start_values() {
    const std::uint64_t v = wgmma_descriptor(smem.values(values_stage), Swizzle::bytes_128, 1024);
#pragma unroll
    for (int step = 0; step < tile_keys / 16; ++step) {
#pragma unroll
      for (int half = 0; half < Size::halves; ++half) {
        if (step == 0) wgmma_fence();  // one fence for both halves makes the compiler serialize the products
        wgmma_transposed_b(state.values[half], weights[step],
                           v + descriptor_offset(half * Size::key_half + 16 * row_bytes * step), true);
      }
    }
  }
  __device__ void fence_value_operands() {
#pragma unroll
    for (int half = 0; half < Size::halves; ++half) wgmma_fence_operand(state.values[half]);
#pragma unroll
    for (int step = 0; step < tile_keys / 16; ++step) wgmma_fence_operand(weights[step]);
  }

  __device__ void softmax(int first, float factor) {
    const bool sees_all = first + tile_keys - 1 <= queries.first_position &&
                          first >= call.map.first_visible(queries.last_position) &&
                          queries.count == group_queries;
    if (__all_sync(full_warp, sees_all)) {
      state.template softmax<false>(weights, scores, call.map, first, factor, lane);
    } else {
      state.template softmax<true>(weights, scores, call.map, first, factor, lane);
    }
  }

  __device__ void run(const Keys& all) {
    const float factor = call.scale * 1.4426950408889634f;  // exponents of two
    int from = 0, to = 0;
    if (queries.count > 0) {
      from = (call.map.first_visible(queries.first_position) - all.begin) / tile_keys;
      to = (queries.last_position - all.begin) / tile_keys + 1;
    }
    from = __shfl_sync(full_warp, from, 0), to = __shfl_sync(full_warp, to, 0);  // makes them warp-uniform
    pass(from);
    if (to > from) {
      wait_for_keys();
      start_scores();
      finish_scores();
    }
    for (int tile = from; tile < to - 1; ++tile) {
      const int before = values_stage;
      softmax(all.begin + tile * tile_keys, factor);
      wait_for_keys();
      start_values();
      start_scores();
      finish_scores();
      fence_value_operands();
      release(before);
    }
    if (to > from) {
      softmax(all.begin + (to - 1) * tile_keys, factor);
      start_values();
      wgmma_commit_group();
      wgmma_wait_group<0>();
      fence_value_operands();
      release(values_stage);
    }
    pass(all.tiles - to);
  }
  // Also completes products started before the scores.
  __device__ void finish_scores() {
    wgmma_commit_group();
    wgmma_wait_group<0>();
    wgmma_fence_operand(scores);
    values_stage = keys.stage;
    keys.advance(Size::stages);
  }

  __device__ void write() const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float sum = state.sum[half];
      sum += __shfl_xor_sync(full_warp, sum, 1);
      sum += __shfl_xor_sync(full_warp, sum, 2);
      const int row = warp * 16 + lane / 4 + 8 * half;
      if (row >= queries.count) continue;
      float factor = 1.0f / sum;
      if (call.sinks != nullptr) {
        const float sink = call.sinks[head], own = state.top[half] * call.scale, top = fmaxf(own, sink);
        const float rescale = __expf(own - top);
        factor = rescale / (sum * rescale + __expf(sink - top));
      }
      const std::int64_t to = (std::int64_t{queries.first + row} * call.heads + head) * call.head_dim;
#pragma unroll
      for (int n = 0; n < Dims / 8; ++n) {
        const int d = 8 * n + 2 * (lane % 4);
        const float* v = state.values[n / 8] + n % 8 * 4 + 2 * half;
        if (d < call.head_dim) {
          *reinterpret_cast<std::uint32_t*>(call.out + (to + d) * 2) =
              pack_bf16x2(v[0] * factor, v[1] * factor);
        }
      }
    }
  }
};

// Number of query tiles, computed by all threads together. Sequences left to attention_tiles.cu have none.
template <int Dims>
__device__ int count_tiles(const TilesCall& call) {
  __shared__ int total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  for (int s = static_cast<int>(threadIdx.x); s < call.map.sequences; s += Sizes<Dims>::threads) {
    atomicAdd(&total, tiles_of(call, s, Sizes<Dims>::queries));
  }
  __syncthreads();
  return total;
}

// use(queries, head) for each query tile of this block; tiles of a sequence with the most keys come first.
template <int Dims, class Use>
__device__ void for_each_tile(const TilesCall& call, int tiles, const Use& use) {
  for (int i = static_cast<int>(blockIdx.x); i < tiles * call.heads; i += static_cast<int>(gridDim.x)) {
    use(queries_of(call, tiles - 1 - i / call.heads, Sizes<Dims>::queries), i % call.heads);
  }
}

template <int Dims>
__global__ void __launch_bounds__(Sizes<Dims>::threads, 1)
    attend_hopper_kernel(const __grid_constant__ TilesCall call) {
  extern __shared__ __align__(1024) std::byte start[];
  const Smem<Dims> smem = {start};
  if (threadIdx.x == 0) smem.init_barriers();
  wait_for_previous();
  let_next_start();
  const int tiles = count_tiles<Dims>(call);
  const int group = static_cast<int>(threadIdx.x) / group_threads - 1;
  if (group < 0) {
    setmaxnreg_dec<Dims == 64 ? 32 : 40>();
    Producer<Dims> producer = {call, smem};
    for_each_tile<Dims>(
        call, tiles, [&](const Queries& queries, int head) { producer.run(queries, call.kv_head_of(head)); });
    return;
  }
  setmaxnreg_inc<Dims == 64 ? 160 : 232>();
  Consumer<Dims> consumer = {.call = call,
                             .smem = smem,
                             .group = group,
                             .lane = static_cast<int>(threadIdx.x) % 32,
                             .warp = static_cast<int>(threadIdx.x) / 32 % group_warps};
  for_each_tile<Dims>(call, tiles, [&](const Queries& queries, int head) {
    consumer.begin(queries, head);
    consumer.load_queries();
    consumer.run(Keys(call, queries));
    consumer.write();
  });
}

template <int Dims>
void start(const Queue& queue, const TilesCall& call, int rows) {
  using Size = Sizes<Dims>;
  const auto kernel = attend_hopper_kernel<Dims>;
  const int tiles = rows / Size::queries + call.map.sequences;  // upper bound
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, Size::bytes));
  launch(queue,
         {.grid = dim3(static_cast<unsigned>(std::min(tiles * call.heads, queue.multiprocessors))),
          .threads = Size::threads,
          .shared = Size::bytes},
         kernel, call);
}

}  // namespace

void start_hopper(const Queue& queue, const TilesCall& call, int rows) {
  if (call.head_dim <= 64) return start<64>(queue, call, rows);
  start<128>(queue, call, rows);
}

}  // namespace inferno::cuda
