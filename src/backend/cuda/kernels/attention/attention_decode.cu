// Decode attention: one new token per sequence, RoPE included. A block takes one sequence, the query heads of
// one KV head and a range of positions; each of its four warps takes 32 positions at a time (16 if head_dim
// is 128). Bound by latency: cached keys and values are loaded before the predecessor ends, queries are
// rotated in the registers of the mma operand, and the new key and value are used without a round trip
// through the cache. A block is small enough to be resident beside one of stream_kernel.cuh.
#include <algorithm>
#include <bit>

#include "backend/cuda/kernels/attention/attention_decode.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

using namespace decode;

// Per head (row) g, all lanes hold the same running maximum and each its own part of the sum. Of dimensions
// 16 m + g and 16 m + g + 8 a lane holds heads 2 t and 2 t + 1. Scores are computed as [heads, positions],
// which is the operand layout of the attention weights in [dimensions, positions] * [positions, heads].
template <int Dim>
struct DecodeState {
  static constexpr int tiles = DecodeShape<Dim>::tiles;
  float top = -INFINITY, sum = 0.0f;
  float out[Dim / 16][4] = {};

  // There are eight heads for sixteen mma rows. The other eight rows hold other elements of the same heads,
  // so that the queries of a chunk are four registers in order without padding: two products, of which half
  // is used.
  template <DType Type>
  __device__ static void score(float (&scores)[tiles][4], const KeyValueStep<Dim, Type>& step,
                               const uint4 (&queries)[Dim / 32]) {
#pragma unroll
    for (int i = 0; i < 2 * tiles; ++i) {
      float low[4] = {}, high[4] = {};
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) {
        const uint4& q = queries[c];
        const uint4 k = step.keys[i][c].narrow();
        mma_bf16(low, q.x, q.z, q.y, q.w, k.x, k.y);
        mma_bf16(high, q.x, q.z, q.y, q.w, k.z, k.w);
      }
      scores[i / 2][i % 2 * 2] = low[0] + high[2];
      scores[i / 2][i % 2 * 2 + 1] = low[1] + high[3];
    }
  }
  // Turns scores into softmax weights. `there` is the number of valid positions of the step. Returns the
  // factor by which earlier sums must be multiplied.
  __device__ float softmax(float (&scores)[tiles][4], float scale, int there, int lane) {
    float largest = top;
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int position = 16 * j + i / 2 * 8 + 2 * (lane % 4) + i % 2;
        scores[j][i] = position < there ? scores[j][i] * scale : -INFINITY;
        largest = fmaxf(largest, scores[j][i]);
      }
    }
    largest = fmaxf(largest, __shfl_xor_sync(full_warp, largest, 1));
    largest = fmaxf(largest, __shfl_xor_sync(full_warp, largest, 2));
    const float rescale = exp2_of(top - largest);
    top = largest;
    sum *= rescale;
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        scores[j][i] = exp2_of(scores[j][i] - largest);
        sum += scores[j][i];
      }
    }
    return rescale;
  }
  __device__ void rescale_sums(float rescale, int lane) {
    const float even = __shfl_sync(full_warp, rescale, lane % 4 * 8);
    const float odd = __shfl_sync(full_warp, rescale, lane % 4 * 8 + 4);
#pragma unroll
    for (int m = 0; m < Dim / 16; ++m) {
      out[m][0] *= even, out[m][1] *= odd;
      out[m][2] *= even, out[m][3] *= odd;
    }
  }
  __device__ void add(const float (&weights)[tiles][4], __nv_bfloat16* values, int lane) {
#pragma unroll
    for (int j = 0; j < tiles; ++j) {
      const std::uint32_t low = pack_bf16x2(weights[j][0], weights[j][1]);
      const std::uint32_t high = pack_bf16x2(weights[j][2], weights[j][3]);
#pragma unroll
      for (int m = 0; m < Dim / 16; ++m) {
        std::uint32_t v[4];  // dimensions 0 to 7 and 8 to 15, positions 0 to 7 and 8 to 15
        ldmatrix_trans(v, value_chunk<Dim>(values, 16 * j + lane % 8 + lane / 16 * 8, 2 * m + lane / 8 % 2));
        mma_bf16(out[m], v[0], v[1], v[2], v[3], low, high);
      }
    }
  }
  // `factor`: of the values.
  __device__ void store(DecodeSmem<Dim>& smem, float factor, int warp, int lane) {
    sum += __shfl_xor_sync(full_warp, sum, 1);
    sum += __shfl_xor_sync(full_warp, sum, 2);
    if (lane % 4 == 0) smem.tops[warp][lane / 4] = {top, sum};
    cp_async_wait_group<0>();  // a warp without positions has zero fills in flight as well
    __syncwarp();              // results reuse the memory of the values
#pragma unroll
    for (int m = 0; m < Dim / 16; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int head = lane % 4 * 2 + i % 2, d = 16 * m + i / 2 * 8 + lane / 4;
        *result_at<Dim>(smem.per_warp[warp].results, head, d) = out[m][i] * factor;
      }
    }
  }
};

template <int Dim, DType Type>
__device__ void attend_warp(const DecodeCall& call, const DecodeWork& at, DecodeSmem<Dim>& smem,
                            KeyValueStep<Dim, Type>& step, const uint4 (&queries)[Dim / 32]) {
  constexpr int pass = DecodeShape<Dim>::pass;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  __nv_bfloat16* values = smem.per_warp[warp].values;
  DecodeState<Dim> state;
  const int begin = at.begin + warp * DecodeShape<Dim>::step;
  const float scale = Type == DType::f8_e4m3 ? call.scale * call.keys.scale(at.kv_head) : call.scale;
  for (int first = begin; first < at.end; first += pass) {
    const bool another = first + pass < at.end;
    int lane = static_cast<int>(threadIdx.x) % 32;
    asm volatile("" : "+r"(lane));  // recomputes addresses: keeping all of them would spill registers
    step.insert_key(at, smem, first, lane);
    float weights[DecodeState<Dim>::tiles][4];
    state.score(weights, step, queries);
    if (another) {
      step.find(call, at, first + pass, lane);
      step.fetch_keys(call, at, lane);
    }
    const float rescale = state.softmax(weights, scale, at.end - first, lane);
    if (first != begin) state.rescale_sums(rescale, lane);
    cp_async_wait_group<0>();
    __syncwarp();
    step.place_values(values, lane);
    step.insert_value(at, smem, first, values, lane);
    state.add(weights, values, lane);
    if (another) {
      __syncwarp();
      step.fetch_values(call, at, values, lane);
    }
  }
  const float factor = Type == DType::f8_e4m3 ? call.values.scale(at.kv_head) : 1.0f;
  state.store(smem, factor, warp, static_cast<int>(threadIdx.x) % 32);
}

template <int Dim, DType Type, bool clusters>
__global__ void __launch_bounds__(32 * warps, 4) decode_kernel(const __grid_constant__ DecodeCall call) {
  __shared__ __align__(16) DecodeSmem<Dim> smem;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  let_next_start();
  if (clusters && call.splits > 1) cluster_arrive();  // waited for before the first remote store
  // Positions and block tables were uploaded, and earlier keys and values written, before the step's first
  // kernel, which waited for them before it let another kernel start.
  const DecodeWork at = work_of<Dim>(call);
  if (at.idle()) {
    if (clusters && call.splits > 1) cluster_wait();
    // Without griddepcontrol.wait: blocks with work wait, so this kernel still ends after its predecessor.
    return;
  }
  if (thread == 0) smem.work = at;
  const int begin = at.begin + warp * DecodeShape<Dim>::step;
  KeyValueStep<Dim, Type> step;
  fetch_angles<Dim>(call, at, smem);
  step.find(call, at, begin, lane);
  step.fetch_keys(call, at, lane);
  step.fetch_values(call, at, smem.per_warp[warp].values, lane);
  const float sink = sink_of<Dim>(call, at, thread);
  wait_for_previous();
  uint4 queries[Dim / 32];
  read_queries<Dim, Type>(queries, call, at, smem);
  attend_warp<Dim, Type>(call, at, smem, step, queries);
  if (clusters && call.splits > 1) cluster_wait();
  __syncthreads();
  const DecodeWork& work = smem.work;
  if (work.splits * work.clusters == 1) return write_single_block<Dim>(call, work, smem, sink);
  if constexpr (clusters) {
    write_in_cluster<Dim>(call, work, smem, sink);
  } else {
    write_from_last_block<Dim>(call, work, smem);
  }
}

struct SplitK {
  int splits = 1, clusters = 1;
};

// How many blocks share a context. Limits found by measurement: at most two blocks per SM, four as long as a
// context is not split yet, one beyond eight splits. The result depends only on the batch shape and the block
// table's size, so that a recorded graph stays valid while sequences grow; blocks without positions exit.
SplitK split_for_decode(const Queue& queue, const AttentionCall& call, std::int64_t blocks,
                        std::int64_t max_splits) {
  const std::int64_t capacity = std::int64_t{call.group.block_table.cols} * call.step.block_size;
  const std::int64_t longest =
      call.spec.window > 0 ? std::min<std::int64_t>(capacity, call.spec.window) : capacity;
  const int pass = call.spec.head_dim == 64 ? DecodeShape<64>::pass : DecodeShape<128>::pass;
  const std::int64_t processors = queue.multiprocessors;
  SplitK cut;
  while (2 * cut.splits <= max_splits && cut.splits * pass < longest &&
         2 * cut.splits * blocks <= (cut.splits == 1  ? 4
                                     : cut.splits < 8 ? 2
                                                      : 1) *
                                        processors) {
    cut.splits *= 2;
  }
  if (cut.splits == 1) return cut;
  // Several clusters only for long contexts, and only if SMs would be idle otherwise.
  const std::int64_t clusters = std::clamp<std::int64_t>(processors / (blocks * cut.splits), 1, max_clusters);
  cut.clusters = static_cast<int>(std::clamp<std::int64_t>(longest / (2 * cut.splits * pass), 1, clusters));
  return cut;
}

template <int Dim, DType Type>
void launch_decode(const Queue& queue, const DecodeCall& call, std::int64_t blocks) {
  Shape shape = {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(call.splits),
                              static_cast<unsigned>(call.clusters)),
                 .threads = 32 * warps};
  if (queue.max_cluster == 1) return launch(queue, shape, decode_kernel<Dim, Type, false>, call);
  shape.cluster = static_cast<unsigned>(call.splits);
  if constexpr (Type != DType::bf16) {
    // max_decode_cluster() has asked for the kernel of bf16, which needs no fewer resources.
    check(cudaFuncSetAttribute(decode_kernel<Dim, Type, true>, cudaFuncAttributeNonPortableClusterSizeAllowed,
                               1));
  }
  launch(queue, shape, decode_kernel<Dim, Type, true>, call);
}

template <int Dim>
void launch_decode_of(DType type, const Queue& queue, const DecodeCall& call, std::int64_t blocks) {
  if (type == DType::q8_0) return launch_decode<Dim, DType::q8_0>(queue, call, blocks);
  if (type == DType::f8_e4m3) return launch_decode<Dim, DType::f8_e4m3>(queue, call, blocks);
  launch_decode<Dim, DType::bf16>(queue, call, blocks);
}

// Asks the driver whether clusters of that many blocks can be resident. The blocks of a cluster share a GPC,
// and the number of SMs per GPC varies between cards. Beside a streaming kernel each SM has room for one
// block, so clusters must be able to cover most of the device, or the last ones start late.
template <int Dim>
bool cluster_size_fits(unsigned blocks, int multiprocessors, int shared_limit) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {.x = 1, .y = blocks, .z = 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1, blocks);
  config.blockDim = dim3(32 * warps);
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  const auto kernel = decode_kernel<Dim, DType::bf16, true>;
  cudaFuncAttributes attributes = {};
  check(cudaFuncGetAttributes(&attributes, kernel));
  const int rest = shared_limit - static_cast<int>(attributes.sharedSizeBytes);
  config.dynamicSmemBytes = static_cast<std::size_t>(rest);
  // Clusters of more than eight blocks are not portable.
  const bool answered =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1) == cudaSuccess &&
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, rest) == cudaSuccess &&
      cudaOccupancyMaxActiveClusters(&clusters, kernel, &config) == cudaSuccess;
  if (!answered) cudaGetLastError();  // a device without clusters is not an error
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 0));
  return answered && 6 * clusters * static_cast<int>(blocks) >= 5 * multiprocessors;
}

}  // namespace

int max_decode_cluster(int multiprocessors, int shared_limit) {
  unsigned blocks = 1;
  while (2 * blocks <= max_cluster && cluster_size_fits<64>(2 * blocks, multiprocessors, shared_limit) &&
         cluster_size_fits<128>(2 * blocks, multiprocessors, shared_limit)) {
    blocks *= 2;
  }
  return static_cast<int>(blocks);
}

void attend_decode(const Queue& queue, Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call,
                   const AttendScratch& scratch) {
  const AttentionSpec& spec = call.spec;
  const int shared = spec.heads / spec.kv_heads, chunks = (shared + max_heads - 1) / max_heads;
  const std::int64_t blocks = std::int64_t{out.rows} * spec.kv_heads * chunks;
  // Partial results that are reduced in global memory must fit in the scratch buffer.
  const std::int64_t part_floats = parts * (spec.head_dim / 2 + 4);
  const std::int64_t fits =
      blocks * max_cluster > scratch.ticket_count ? 1 : scratch.partial_floats / (blocks * part_floats);
  const bool in_clusters = queue.max_cluster > 1;
  SplitK cut = split_for_decode(
      queue, call, blocks, in_clusters ? queue.max_cluster : std::min<std::int64_t>(attend_max_splits, fits));
  cut.clusters = in_clusters ? static_cast<int>(std::clamp<std::int64_t>(fits, 1, cut.clusters)) : 1;
  const DecodeCall what = {.out = elements_of(out),
                           .qkv = floats_of(qkv),
                           .table = floats_of(rope_table),
                           .q_norm = floats_of(call.weights.q_norm),
                           .k_norm = floats_of(call.weights.k_norm),
                           .sinks = spec.sinks ? floats_of(call.weights.sinks) : nullptr,
                           .keys = cached(call.cache.keys, call.weights.key_scales, spec.head_dim),
                           .values = cached(call.cache.values, call.weights.value_scales, spec.head_dim),
                           .slots = integers_of(call.group.slots),
                           .positions = integers_of(call.step.positions),
                           .block_table = integers_of(call.group.block_table),
                           .table_cols = call.group.block_table.cols,
                           .block_shift = std::countr_zero(static_cast<unsigned>(call.step.block_size)),
                           .window = spec.window,
                           .heads = spec.heads,
                           .kv_heads = spec.kv_heads,
                           .half = rope_table ? rope_table.cols / 2 : 0,
                           .chunks = chunks,
                           .splits = cut.splits,
                           .clusters = cut.clusters,
                           .scale = spec.scale * log2_e,
                           .epsilon = call.weights.norm_epsilon,
                           .normalizes = spec.qk_norm,
                           .partial = scratch.partial,
                           .tickets = scratch.tickets};
  const DType type = call.cache.keys.dtype;
  if (spec.head_dim == 64) return launch_decode_of<64>(type, queue, what, blocks);
  launch_decode_of<128>(type, queue, what, blocks);
}

}  // namespace inferno::cuda
