// Arguments of a grouped product, its shared memory, and the part of the work that a block takes.
#pragma once

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/device/tma.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/experts/experts.h"

namespace inferno::cuda {

// A stage of the ring: `chunks` chunks of each tile of a pair, `each` per member of a team.
template <WeightFormat Format>
struct GroupedStage {
  static constexpr tiles::Chunk chunk = tiles::chunk_of(Format);
  static constexpr int each = grouped_chunks_each(chunk);
  static constexpr int chunks = grouped_members * each;
  static constexpr int tile_bytes = chunks * chunk.bytes, bytes = 2 * tile_bytes;
  static_assert(bytes == grouped_stage_bytes(chunk));
};

// Rows that are contiguous in the output from `column` on.
struct GroupedPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_pair = 0;
};

struct GroupedCall {
  GroupedShape shape;
  int pairs = 0;                      // pairs of one expert; plain: two tiles make a pair
  GroupedPart parts[gemv_max_parts];  // gated: gate, then up
  int part_count = 1;
  std::int64_t tile_bytes = 0, expert_bytes = 0;
  // The tables of groups. Null: all tokens use one matrix, and groups are consecutive tokens.
  const std::int32_t *group_expert = nullptr, *group_first = nullptr, *group_rows = nullptr;
  int groups = 0, tokens = 0;
  const std::int32_t* gather = nullptr;  // token row of each place; null: identity
  const std::byte* in = nullptr;         // 16-bit elements
  const float* factors = nullptr;        // scale of each row; null: 1
  int cols = 0;
  Elements out;
  bool out_is_f16 = false;
  int out_cols = 0;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  ActivationSpec activation;
};

// Shared memory, front to back.
struct GroupedSmem {
  Mbarrier *full, *empty, *tokens_full, *tokens_empty, *sums_full, *sums_empty;
  std::int32_t* work;  // first group, its first pair, last group, its end
  float4* sums;        // [team][member except the reducer][n-tile][lane]
  std::byte *ring, *tokens;

  __device__ GroupedSmem(std::byte* start, const GroupedShape& shape) {
    full = reinterpret_cast<Mbarrier*>(start);
    empty = full + grouped_max_stages;
    tokens_full = empty + grouped_max_stages;
    tokens_empty = tokens_full + 1;
    sums_full = tokens_empty + 1;
    sums_empty = sums_full + grouped_teams;
    work = reinterpret_cast<std::int32_t*>(sums_empty + grouped_teams);
    sums = reinterpret_cast<float4*>(start + grouped_small_bytes);
    tokens = start + grouped_small_bytes + grouped_sums_bytes(shape.n_tiles);
    ring = start + grouped_fixed_bytes(shape);
  }
};

// A group, and the range of its tile pairs that this block multiplies.
struct GroupedPass {
  int expert, place, rows, first, end;
};

// Blocks take ranges of pairs of about equal cost: a pair is loaded and decoded once per group and multiplied
// once per eight tokens, which costs little in comparison.
struct GroupedWork {
  int first_group, first_pair, last_group, last_end;

  static __device__ int cost_of(int rows) {
    constexpr int base = 12;
    return rows > 0 ? base + (rows + 7) / 8 : 0;
  }
  // Blocks that read the same pairs for different groups run at the same time, so that one of them hits L2.
  static __device__ void divide(std::int32_t* to, const GroupedCall& call) {
    const int block = static_cast<int>(blockIdx.x), blocks = static_cast<int>(gridDim.x);
    const int group = block % call.groups, own = block / call.groups;
    const int all = (blocks - 1 - group) / call.groups + 1;
    to[0] = to[2] = group;
    to[1] = call.pairs * own / all;
    to[3] = call.pairs * (own + 1) / all;
  }
  // One warp computes where the ranges of this block and of the next begin, in shared memory.
  static __device__ void find(std::int32_t* to, const GroupedCall& call, int lane) {
    int total = 0, count = 0;
    for (int base = 0; base < call.groups; base += 32) {
      const int rows = base + lane < call.groups ? __ldcg(call.group_rows + base + lane) : 0;
      total += __reduce_add_sync(full_warp, cost_of(rows));
      count += __popc(__ballot_sync(full_warp, rows > 0));
    }
    const std::int64_t all = std::int64_t{total} * call.pairs;
    const std::int64_t begin = all * blockIdx.x / gridDim.x, end = all * (blockIdx.x + 1) / gridDim.x;
    if (lane < 4) to[lane] = lane % 2 == 0 ? count : 0;
    __syncwarp();
    int before = 0;
    for (int base = 0; base < call.groups; base += 32) {
      const int group = base + lane;
      const int cost = cost_of(group < call.groups ? __ldcg(call.group_rows + group) : 0);
      int sum = cost;
      for (int offset = 1; offset < 32; offset <<= 1) {
        const int other = __shfl_up_sync(full_warp, sum, offset);
        if (lane >= offset) sum += other;
      }
      const std::int64_t from = std::int64_t{before + sum - cost} * call.pairs;
      const auto place = [&](std::int32_t* at, std::int64_t position) {
        if (position < from || position >= from + std::int64_t{cost} * call.pairs) return;
        const int pair = static_cast<int>((position - from + cost - 1) / cost);
        at[0] = pair == call.pairs ? group + 1 : group;
        at[1] = pair == call.pairs ? 0 : pair;
      };
      place(to, begin);
      place(to + 2, end);
      before += __shfl_sync(full_warp, sum, 31);
    }
    __syncwarp();
  }

  static __device__ GroupedPass whole(const GroupedCall& call, int group) {
    GroupedPass pass = {
        .expert = 0, .place = 8 * call.shape.n_tiles * group, .rows = 0, .first = 0, .end = call.pairs};
    if (call.group_rows == nullptr) {
      pass.rows = min(8 * call.shape.n_tiles, call.tokens - pass.place);
      return pass;
    }
    pass.expert = __ldcg(call.group_expert + group);
    pass.place = __ldcg(call.group_first + group);
    pass.rows = __ldcg(call.group_rows + group);
    return pass;
  }
  // use(pass) for each group of the range.
  template <class Use>
  __device__ void for_each(const GroupedCall& call, Use&& use) const {
    for (int group = first_group; group <= last_group; ++group) {
      const int first = group == first_group ? first_pair : 0;
      const int end = group == last_group ? last_end : call.pairs;
      if (first >= end) continue;
      GroupedPass pass = whole(call, group);
      pass.first = first;
      pass.end = end;
      use(pass);
    }
  }
};

__device__ inline const GroupedPart& part_of(const GroupedCall& call, int pair) {
  int part = 0;
  while (part + 1 < call.part_count && pair >= call.parts[part + 1].first_pair) ++part;
  return call.parts[part];
}

// The team's next stage: every fourth is its own.
__device__ inline void advance(PipelineState& state, int stages) {
  state.stage += grouped_teams;
  if (state.stage < stages) return;
  state.stage -= stages;
  state.parity ^= 1u;
}

}  // namespace inferno::cuda
