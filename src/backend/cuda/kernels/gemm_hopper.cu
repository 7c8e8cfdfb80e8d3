// gemm on Hopper: tiles of 128 tokens x 128 weight rows with wgmma, 64 columns at a time through a ring of
// stages in shared memory. One warp group copies. Two multiply, a whole tile each, in turns: while one writes
// its sums the other has the tensor cores. Blocks stay and take one tile after another.
//
// Weights arrive by tensor copies: a chunk of tiles.cuh (eight rows, 64 columns) is two atoms of the 64-byte
// exchange already. So do tokens, unless experts gather their rows: those arrive by cp.async, 16 bytes at a
// time. Measured and left out: plain bulk copies of chunks (a third of the speed: they cost 60 cycles each),
// clusters whose blocks share weights (slower), tiles of 256 rows (writing their sums stops the tensor
// cores).
#include <algorithm>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tensor_copy.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/tensor_map.h"

namespace inferno::cuda {
namespace {

constexpr int side = gemm_rows, depth = 64;  // a tile's tokens, and its weight rows; columns of a stage
constexpr int group_threads = 128, threads = 3 * group_threads;
constexpr int chunk_bytes = tiles::chunk_of(WeightFormat::bf16).bytes;
constexpr int operand_bytes = side * depth * 2;
constexpr int stages = 6, stage_bytes = 2 * operand_bytes;
constexpr int shared_bytes = stages * stage_bytes + (2 * stages + 2) * static_cast<int>(sizeof(Barrier));
constexpr int band = 8;                                     // token tiles that share the weights in L2
constexpr int copies = operand_bytes / 16 / group_threads;  // of gathered tokens, for each copying thread
static_assert(side == 128 && tiles::chunk_of(WeightFormat::bf16).cols == depth);

struct GemmArguments {
  CUtensorMap weight_map;  // [groups of eight rows, chunks, 1024 bytes]
  CUtensorMap token_map;   // [tokens, columns], unless they are gathered
  const std::byte* in;
  Elements out;
  const float* bias;
  std::int64_t bias_stride;
  int groups;  // of eight rows, in a matrix
  int tokens, rows, cols, column, out_cols;
  const std::int32_t *tile_expert, *tile_first, *counts, *starts, *gather;
  int tiles, first_expert, experts;
};

struct Ring {
  std::byte* room;
  __device__ std::byte* tokens(int stage) const { return room + stage * stage_bytes; }
  __device__ std::byte* weights(int stage) const { return tokens(stage) + operand_bytes; }
  __device__ Barrier* full(int stage) const {
    return reinterpret_cast<Barrier*>(room + stages * stage_bytes) + stage;
  }
  __device__ Barrier* empty(int stage) const { return full(stages + stage); }
  __device__ Barrier* turn(int group) const { return full(2 * stages + group); }
};

// One tile of the output: rows [first_token, first_token + tokens), weight rows from first_row on.
struct Tile {
  int first_token, tokens, first_row, expert;
};

// Which tiles there are, and in which order: token tiles before weight rows, in bands.
struct Plan {
  int first_tile, token_tiles, row_tiles;

  // All threads together: tiles of the experts that this call has follow one another.
  __device__ explicit Plan(const GemmArguments& call) {
    row_tiles = (call.rows + side - 1) / side;
    first_tile = 0;
    token_tiles = (call.tokens + side - 1) / side;
    if (call.tile_expert == nullptr) return;
    token_tiles = 0;
    for (int first = 0; first < call.tiles; first += threads) {
      const int index = first + static_cast<int>(threadIdx.x);
      const int expert = index < call.tiles ? call.tile_expert[index] : -1;
      first_tile += __syncthreads_count(expert >= 0 && expert < call.first_expert);
      token_tiles +=
          __syncthreads_count(expert >= call.first_expert && expert < call.first_expert + call.experts);
    }
  }

  __device__ int total() const { return token_tiles * row_tiles; }
  __device__ Tile tile(const GemmArguments& call, int index) const {
    const int whole = index / (band * row_tiles), rest = index - whole * band * row_tiles;
    const int width = min(band, token_tiles - whole * band);
    const int place = first_tile + whole * band + rest % width, row = rest / width * side;
    if (call.tile_expert == nullptr) {
      return {place * side, min(side, call.tokens - place * side), row, 0};
    }
    const int expert = call.tile_expert[place], first = call.tile_first[place];
    return {first, min(side, call.starts[expert] + call.counts[expert] - first), row, expert};
  }
};

// The copying warps' side of the ring. One thread asks for everything, except for tokens that are gathered.
template <bool Gathers>
class Filler {
 public:
  static constexpr int arrivals = Gathers ? group_threads + 1 : 1;  // at a full stage, beside the bytes
  __device__ Filler(const GemmArguments& call, const Ring& ring) : call_(call), ring_(ring) {}

  __device__ void fill(const Tile& tile) {
    if constexpr (Gathers) {
      fill_gathered(tile);
    } else if (threadIdx.x == 0) {
      for (int k = 0; k < call_.cols; k += depth) {
        wait(ring_.empty(next_.stage), next_.parity);
        copy_weights(tile, k);
        tensor_copy(ring_.tokens(next_.stage), call_.token_map, k, tile.first_token, ring_.full(next_.stage));
        next_.advance(stages);
      }
    }
  }

 private:
  __device__ void fill_gathered(const Tile& tile) {
    const int thread = static_cast<int>(threadIdx.x);
    const int unit = thread % 8, first = thread / 8;  // 16 bytes of a row; its number
    const std::byte* rows[copies];
#pragma unroll
    for (int i = 0; i < copies; ++i) {  // rows behind the last are copies of it, never written
      const int row = min(first + i * (group_threads / 8), tile.tokens - 1);
      rows[i] = call_.in + (std::int64_t{call_.gather[tile.first_token + row]} * call_.cols + unit * 8) * 2;
    }
    const int to = first * 128 + (unit ^ (first % 8)) * 16;
    for (int k = 0; k < call_.cols; k += depth) {
      wait(ring_.empty(next_.stage), next_.parity);
      if (thread == 0) copy_weights(tile, k);
      const bool inside = k + unit * 8 < call_.cols;
      std::byte* target = ring_.tokens(next_.stage) + to;
#pragma unroll
      for (int i = 0; i < copies; ++i) {
        copy_later(target + i * (group_threads / 8 * 128), inside ? rows[i] + k * 2 : call_.in, inside);
      }
      arrive_after_copies(ring_.full(next_.stage));
      next_.advance(stages);
    }
  }
  __device__ void copy_weights(const Tile& tile, int k) {
    Barrier* full = ring_.full(next_.stage);
    arrive_expecting(full, Gathers ? operand_bytes : stage_bytes);
    const int group = (tile.expert - call_.first_expert) * call_.groups + tile.first_row / tiles::tile_rows;
    tensor_copy(ring_.weights(next_.stage), call_.weight_map, 0, k / depth, group, full);
  }

  const GemmArguments& call_;
  const Ring& ring_;
  RingPlace next_ = {0, 1};  // the first time round every stage is free
};

using Sums = float[2][side / 2];  // 64 tokens each

// A multiplying warp group's side. A group begins when the other has waited for its last stage: a barrier's
// parity cannot tell a stage to come from one two rounds ago.
template <bool Gathers>
class Multiplier {
 public:
  __device__ Multiplier(const Ring& ring, int group)
      : ring_(ring), group_(group), turn_parity_(group == 0 ? 1 : 0) {}  // the first group's turn is first

  // Halves: 2 where there are more than 64 tokens.
  template <int Halves>
  __device__ void multiply(Sums& sums, int steps) {
    wait(ring_.turn(group_), turn_parity_);
    turn_parity_ ^= 1;
    start<Halves>(sums, /*adds=*/false);
    for (int step = 1; step < steps; ++step) {
      const int before = place_.stage;
      place_.advance(stages);
      start<Halves>(sums, /*adds=*/true);
      wait_for_groups<1>();
      release(before);
    }
    if (threadIdx.x % 32 == 0) arrive(ring_.turn(1 - group_));
    wait_for_groups<0>();
#pragma unroll
    for (int half = 0; half < Halves; ++half) settle(sums[half]);
    release(place_.stage);
    place_.advance(stages);
  }
  // The other group's tile.
  __device__ void skip(int steps) {
    const int end = place_.stage + steps;
    place_.stage = end % stages;
    place_.parity ^= end / stages % 2;
  }

 private:
  template <int Halves>
  __device__ void start(Sums& sums, bool adds) {
    wait(ring_.full(place_.stage), place_.parity);
    if constexpr (Gathers) publish_to_background();  // what cp.async wrote
    const std::uint64_t tokens = group_operand(ring_.tokens(place_.stage), Exchange::rows_of_128, 1024);
    const std::uint64_t weights =
        group_operand(ring_.weights(place_.stage), Exchange::rows_of_64, chunk_bytes);
    group_begins();
#pragma unroll
    for (int k = 0; k < depth / 16; ++k) {
#pragma unroll
      for (int half = 0; half < Halves; ++half) {
        multiply_group(sums[half], tokens + operand_offset(half * (operand_bytes / 2) + 32 * k),
                       weights + operand_offset(512 * (k / 2) + 32 * (k % 2)), adds || k > 0);
      }
    }
    group_closes();
  }
  __device__ void release(int stage) {
    if (threadIdx.x % 32 == 0) arrive(ring_.empty(stage));
  }

  const Ring& ring_;
  int group_;
  std::uint32_t turn_parity_;
  RingPlace place_ = {};
};

__device__ void store_pair(const Elements& out, std::int64_t at, float low, float high, bool both) {
  if (both && at % 2 == 0) {
    if (out.wide) {
      *reinterpret_cast<float2*>(out.data + at * 4) = make_float2(low, high);
    } else {
      *reinterpret_cast<std::uint32_t*>(out.data + at * 2) = packed(low, high);
    }
    return;
  }
  out.put(at, low);
  if (both) out.put(at + 1, high);
}

__device__ void store(const GemmArguments& call, const Tile& tile, const Sums& sums) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int token = warp * 16 + lane / 4, first = tile.first_row + 2 * (lane % 4);
  const std::int64_t at = std::int64_t{tile.first_token + token} * call.out_cols + call.column + first;
  const float* bias =
      call.bias == nullptr ? nullptr : call.bias + tile.expert * call.bias_stride + call.column + first;
#pragma unroll
  for (int j = 0; j < side / 8; ++j) {
    if (first + 8 * j >= call.rows) break;
    const bool both = first + 8 * j + 1 < call.rows;
    const float low = bias == nullptr ? 0.0f : bias[8 * j];
    const float high = bias == nullptr || !both ? 0.0f : bias[8 * j + 1];
#pragma unroll
    for (int i = 0; i < 4; ++i) {  // eight tokens apart in each half
      const int further = i / 2 * 64 + i % 2 * 8;
      if (token + further >= tile.tokens) break;
      store_pair(call.out, at + 8 * j + std::int64_t{further} * call.out_cols,
                 sums[i / 2][4 * j + i % 2 * 2] + low, sums[i / 2][4 * j + i % 2 * 2 + 1] + high, both);
    }
  }
}

template <bool Gathers>
__global__ void __launch_bounds__(threads, 1) gemm_hopper_kernel(const __grid_constant__ GemmArguments call) {
  extern __shared__ __align__(1024) std::byte room[];
  const Ring ring = {room};
  if (threadIdx.x == 0) {
    for (int s = 0; s < stages; ++s) {
      start_barrier(ring.full(s), Filler<Gathers>::arrivals);
      start_barrier(ring.empty(s), group_threads / 32);
    }
    for (int g = 0; g < 2; ++g) start_barrier(ring.turn(g), group_threads / 32);
    publish_barriers();
  }
  wait_for_previous();
  let_next_start();
  __syncthreads();
  const Plan plan(call);
  const int group = static_cast<int>(threadIdx.x) / group_threads - 1, total = plan.total();
  const int first = static_cast<int>(blockIdx.x), step = static_cast<int>(gridDim.x);
  if (group < 0) {
    keep_registers<72>();
    Filler<Gathers> filler(call, ring);
    for (int i = first; i < total; i += step) filler.fill(plan.tile(call, i));
  } else {
    take_registers<216>();
    const int steps = (call.cols + depth - 1) / depth;
    Multiplier<Gathers> multiplier(ring, group);
    if (group == 1) multiplier.skip(steps);
    for (int i = first + group * step; i < total; i += 2 * step) {
      const Tile tile = plan.tile(call, i);
      Sums sums;
      if (tile.tokens > 64) {
        multiplier.template multiply<2>(sums, steps);
      } else {
        multiplier.template multiply<1>(sums, steps);
      }
      store(call, tile, sums);
      multiplier.skip(steps);
    }
  }
}

CUtensorMap map_weights(const GemmCall& call, int groups) {
  const auto tile = static_cast<cuuint64_t>(tiles::tile_bytes(WeightFormat::bf16, call.cols));
  return tensor_map(call.weight,
                    {.type = CU_TENSOR_MAP_DATA_TYPE_UINT64,
                     .rank = 3,
                     .sizes = {chunk_bytes / 8, tile / chunk_bytes,
                               static_cast<cuuint64_t>(groups) * static_cast<cuuint64_t>(call.experts)},
                     .strides = {chunk_bytes, tile},
                     .box = {chunk_bytes / 8, 1, side / tiles::tile_rows}});
}
CUtensorMap map_tokens(const Matrix& in) {
  const auto cols = static_cast<cuuint64_t>(in.cols), rows = static_cast<cuuint64_t>(in.rows);
  return tensor_map(in.data, {.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                              .rank = 2,
                              .sizes = {cols, rows, 1},
                              .strides = {cols * 2, 0},
                              .box = {depth, side, 1},
                              .swizzle = CU_TENSOR_MAP_SWIZZLE_128B});
}

template <bool Gathers>
void start(const Queue& queue, const GemmCall& call) {
  const auto kernel = gemm_hopper_kernel<Gathers>;
  const Sorted* sorted = call.sorted;
  const int groups = static_cast<int>(blocks_for(call.rows, tiles::tile_rows));
  const GemmArguments arguments = {.weight_map = map_weights(call, groups),
                                   .token_map = Gathers ? CUtensorMap{} : map_tokens(call.in),
                                   .in = call.in.data,
                                   .out = elements_of(call.out),
                                   .bias = call.bias,
                                   .bias_stride = call.bias_stride,
                                   .groups = groups,
                                   .tokens = call.out.rows,
                                   .rows = call.rows,
                                   .cols = call.cols,
                                   .column = call.column,
                                   .out_cols = call.out.cols,
                                   .tile_expert = sorted == nullptr ? nullptr : sorted->tile_expert,
                                   .tile_first = sorted == nullptr ? nullptr : sorted->tile_first,
                                   .counts = sorted == nullptr ? nullptr : sorted->counts,
                                   .starts = sorted == nullptr ? nullptr : sorted->starts,
                                   .gather = Gathers ? sorted->tokens : nullptr,
                                   .tiles = call.tiles,
                                   .first_expert = call.first_expert,
                                   .experts = call.experts};
  const unsigned token_tiles =
      sorted == nullptr ? blocks_for(call.out.rows, side) : static_cast<unsigned>(call.tiles);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  launch(queue,
         {.grid = dim3(std::min(token_tiles * blocks_for(call.rows, side),
                                static_cast<unsigned>(queue.multiprocessors))),
          .threads = threads,
          .shared = shared_bytes},
         kernel, arguments);
}

}  // namespace

void gemm_hopper(const Queue& queue, const GemmCall& call) {
  if (call.gathers) {
    start<true>(queue, call);
  } else {
    start<false>(queue, call);
  }
}

}  // namespace inferno::cuda
