// GEMM on Hopper: tiles of 128 tokens x 128 weight rows by wgmma, 64 columns at a time through a ring of
// stages. Persistent and warp-specialized: one producer warp group, and two consumer warp groups that
// alternate whole tiles (ping-pong), so that one runs its epilogue while the other has the tensor cores.
//
// Weights arrive by TMA tensor copies: a chunk of tiles.cuh (eight rows, 64 columns) is two atoms of the
// 64-byte swizzle. So do tokens, except rows gathered for experts, which arrive by cp.async.
// docs/lab/prefill.md lists what was slower.
#include "backend/cuda/kernels/linear/gemm_hopper.cuh"

#include <algorithm>

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/tensor_map.h"

namespace inferno::cuda {
namespace {

using namespace hopper;

__device__ void store_pair(const Elements& out, std::int64_t at, float low, float high, bool both) {
  if (both && at % 2 == 0) {
    if (out.wide) {
      *reinterpret_cast<float2*>(out.data + at * 4) = make_float2(low, high);
    } else {
      *reinterpret_cast<std::uint32_t*>(out.data + at * 2) = pack_bf16x2(low, high);
    }
    return;
  }
  out.put(at, low);
  if (both) out.put(at + 1, high);
}

__device__ float2 bias_at(const float* bias, int at, bool both) {
  if (bias == nullptr) return make_float2(0.0f, 0.0f);
  return make_float2(bias[at], both ? bias[at + 1] : 0.0f);
}

// Gated: the tile's first 64 columns are gate rows, the others the up rows of the same elements.
template <RowKind kind>
__device__ void store(const GemmArguments& call, const Tile& tile, const Sums& sums) {
  constexpr bool gated = kind == RowKind::gated;
  constexpr int runs = (gated ? tile_mn / 2 : tile_mn) / 8;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int token = warp * 16 + lane / 4, first = tile.first_row + 2 * (lane % 4);
  const int rows = kind == RowKind::parts ? call.parts[tile.part].rows : call.rows;
  const int column = kind == RowKind::parts ? call.parts[tile.part].column : call.column;
  const std::int64_t at = std::int64_t{tile.first_token + token} * call.out_cols + column + first;
  const float* bias =
      call.bias == nullptr ? nullptr : call.bias + tile.expert * call.bias_stride + column + first;
#pragma unroll
  for (int j = 0; j < runs; ++j) {
    if (first + 8 * j >= rows) break;
    const bool both = first + 8 * j + 1 < rows;
    const float2 add = bias_at(bias, 8 * j, both);
    const float2 add_up = gated ? bias_at(bias, rows + 8 * j, both) : make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // eight tokens apart in each half
      const int further = i / 2 * 64 + i % 2 * 8, pair = 4 * j + i % 2 * 2;
      if (token + further >= tile.tokens) break;
      float low = sums[i / 2][pair] + add.x, high = sums[i / 2][pair + 1] + add.y;
      if constexpr (gated) {
        low = call.gate(low, sums[i / 2][4 * runs + pair] + add_up.x);
        high = call.gate(high, sums[i / 2][4 * runs + pair + 1] + add_up.y);
      }
      store_pair(call.out, at + 8 * j + std::int64_t{further} * call.out_cols, low, high, both);
    }
  }
}

template <bool Gathers, RowKind kind>
__global__ void __launch_bounds__(threads, 1) gemm_hopper_kernel(const __grid_constant__ GemmArguments call) {
  extern __shared__ __align__(1024) std::byte smem[];
  const Ring ring = {smem};
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      mbarrier_init(ring.full(s), Producer<Gathers, kind>::arrivals);
      mbarrier_init(ring.empty(s), group_threads / 32 * warp_arrivals);
    }
    for (int g = 0; g < 2; ++g) mbarrier_init(ring.turn(g), group_threads / 32 * warp_arrivals);
    fence_proxy_async();
  }
  wait_for_previous();
  let_next_start();
  __syncthreads();
  const TileScheduler<kind> scheduler(call);
  const int group = static_cast<int>(threadIdx.x) / group_threads - 1, total = scheduler.total();
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (group < 0) {
    setmaxnreg_dec<72>();
    Producer<Gathers, kind> producer(call, ring);
    for (int i = first; i < total; i += step) producer.fill(scheduler.tile(call, i));
  } else {
    setmaxnreg_inc<216>();
    const int steps = (call.cols + tile_k - 1) / tile_k;
    Consumer<Gathers> consumer(ring, group);
    if (group == 1) consumer.skip(steps);
    for (int i = first + group * step; i < total; i += 2 * step) {
      const Tile tile = scheduler.tile(call, i);
      Sums sums;
      if (tile.tokens > 64) {
        consumer.template multiply<2>(sums, steps);
      } else {
        consumer.template multiply<1>(sums, steps);
      }
      store<kind>(call, tile, sums);
      consumer.skip(steps);
    }
  }
}

CUtensorMap map_weights(const GemmCall& call, const std::byte* from, int rows, int groups, int rows_each) {
  const auto tile = static_cast<cuuint64_t>(tiles::tile_bytes(WeightFormat::bf16, call.cols));
  const unsigned own = blocks_for(rows, tiles::tile_rows);  // the last expert may be shorter than the stride
  const auto all = static_cast<cuuint64_t>(call.experts - 1) * static_cast<cuuint64_t>(groups) + own;
  return tensor_map(from,
                    {.type = CU_TENSOR_MAP_DATA_TYPE_UINT64,
                     .rank = 3,
                     .sizes = {chunk_bytes / 8, tile / chunk_bytes, all},
                     .strides = {chunk_bytes, tile},
                     .box = {chunk_bytes / 8, 1, static_cast<cuuint32_t>(rows_each / tiles::tile_rows)}});
}
// Fills in the parts, one after another. Returns the number of row tiles.
int add_parts(GemmArguments& arguments, const GemmCall& call) {
  int row_tiles = 0, column = call.column, number = 0;
  for (const WeightView& part : call.parts) {
    arguments.weight_maps[number] = map_weights(call, part.data, part.rows, 0, tile_mn);
    arguments.parts[number++] = {.rows = part.rows, .column = column, .first_tile = row_tiles};
    row_tiles += static_cast<int>(blocks_for(part.rows, tile_mn));
    column += part.rows;
  }
  while (number < gemv_max_parts) arguments.parts[number++].first_tile = row_tiles;
  return row_tiles;
}

template <bool Gathers, RowKind kind>
void start(const Queue& queue, const GemmCall& call) {
  constexpr bool gated = kind == RowKind::gated;
  const auto kernel = gemm_hopper_kernel<Gathers, kind>;
  const Sorted* sorted = call.sorted;
  constexpr int rows_each = gated ? tile_mn / 2 : tile_mn;
  const std::int64_t between = call.rows_between > 0 ? call.rows_between : tiles::padded_rows(call.rows);
  const int groups = static_cast<int>(between / tiles::tile_rows);
  GemmArguments arguments = {.weight_maps = {},
                             .token_map = Gathers ? CUtensorMap{} : map_rows(call.in, tile_mn),
                             .in = call.in.data,
                             .out = elements_of(call.out),
                             .bias = call.bias,
                             .bias_stride = call.bias_stride,
                             .groups = groups,
                             .gate = gated ? gate_of(*call.activation) : Gate{},
                             .tokens = call.out.rows,
                             .rows = call.rows,
                             .cols = call.cols,
                             .column = call.column,
                             .out_cols = call.out.cols,
                             .row_tiles = static_cast<int>(blocks_for(call.rows, rows_each)),
                             .parts = {},
                             .tile_expert = sorted == nullptr ? nullptr : sorted->tile_expert,
                             .tile_first = sorted == nullptr ? nullptr : sorted->tile_first,
                             .counts = sorted == nullptr ? nullptr : sorted->counts,
                             .starts = sorted == nullptr ? nullptr : sorted->starts,
                             .gather = Gathers ? sorted->tokens : nullptr,
                             .tiles = call.tiles,
                             .first_expert = call.first_expert,
                             .experts = call.experts};
  if constexpr (kind == RowKind::parts) {
    arguments.row_tiles = add_parts(arguments, call);
  } else {
    arguments.weight_maps[0] = map_weights(call, call.weight, call.rows, groups, rows_each);
    if (gated) arguments.weight_maps[1] = map_weights(call, call.up, call.rows, groups, rows_each);
  }
  const unsigned token_tiles =
      sorted == nullptr ? blocks_for(call.out.rows, tile_mn) : static_cast<unsigned>(call.tiles);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  launch(queue,
         {.grid = dim3(std::min(token_tiles * static_cast<unsigned>(arguments.row_tiles),
                                static_cast<unsigned>(queue.multiprocessors))),
          .threads = threads,
          .shared = shared_bytes},
         kernel, arguments);
}

}  // namespace

void gemm_hopper(const Queue& queue, const GemmCall& call) {
  if (!call.parts.empty()) {
    start<false, RowKind::parts>(queue, call);
  } else if (call.activation != nullptr) {
    call.gathers ? start<true, RowKind::gated>(queue, call) : start<false, RowKind::gated>(queue, call);
  } else {
    call.gathers ? start<true, RowKind::plain>(queue, call) : start<false, RowKind::plain>(queue, call);
  }
}

void gemm_hopper_gated(const Queue& queue, std::span<const WeightView> gate_up, GemmCall call,
                       const ActivationSpec& activation) {
  const WeightView& gate = gate_up.front();
  call.rows = call.out.cols;
  call.cols = gate.cols;
  call.weight = gate.data;
  call.up = gate_up.size() == 1 ? gate.from_row(call.rows) : gate_up.back().data;
  call.rows_between = gate.rows_between;
  call.activation = &activation;
  gemm_hopper(queue, call);
}

}  // namespace inferno::cuda
