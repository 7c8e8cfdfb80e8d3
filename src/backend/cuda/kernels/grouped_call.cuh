// What a grouped product is told, how it divides its shared memory, and which part of the work a block has.
#pragma once

#include "backend/cuda/device/bulk_copy.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"

namespace inferno::cuda {

enum class GroupedMode { gated, plain };

// Four teams of four warps multiply; one warp copies weights, one gathers tokens.
constexpr int grouped_teams = 4, grouped_members = 4;
constexpr int grouped_warps = grouped_teams * grouped_members;
constexpr int grouped_threads = 32 * (grouped_warps + 2);
constexpr int grouped_most_stages = 24;
constexpr int grouped_most_eights = 3;  // a group's tokens come in eights

// A stage of the ring: of each tile of a pair so many chunks, `each` for each member of a team. Nine
// kilobytes, if a chunk for each is not more.
template <WeightFormat Format>
struct GroupedStage {
  static constexpr tiles::Chunk chunk = tiles::chunk_of(Format);
  static constexpr int wanted = (9 << 10) / (2 * grouped_members * chunk.bytes);
  static constexpr int each = wanted > 1 ? wanted : 1;
  static constexpr int chunks = grouped_members * each;
  static constexpr int tile_bytes = chunks * chunk.bytes, bytes = 2 * tile_bytes;
};

// A pair of tiles is cut into slabs of columns, whose tokens fit into shared memory; a slab into parts, each
// a stage of the ring.
struct GroupedShape {
  int chunks = 0, slabs = 1, slab_chunks = 0;
  int stages = 0, eights = 1, token_stride = 0;  // stages: a multiple of the teams
  __device__ int chunks_of(int slab) const { return min(slab_chunks, chunks - slab * slab_chunks); }
};

struct GroupedCall {
  GroupedShape shape;
  int pairs = 0, rows = 0;                              // of one expert; plain: two tiles make a pair
  const std::byte *first = nullptr, *second = nullptr;  // gated: gate and up
  std::int64_t tile_bytes = 0, expert_bytes = 0;
  const std::int32_t *group_expert = nullptr, *group_first = nullptr, *group_rows = nullptr;
  int groups = 0;                        // of the tables
  const std::int32_t* gather = nullptr;  // the row of each place; null: the place
  const std::byte* in = nullptr;         // bf16
  int cols = 0;
  Elements out;
  int out_cols = 0;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  ActivationSpec activation;
};

// Shared memory, front to back. Sums of a team's members wait there until one of them has read them.
struct GroupedRoom {
  Barrier *full, *empty, *tokens_full, *tokens_empty, *sums_read;
  std::int32_t* share;  // first group, its first pair, last group, its end
  float4* sums;         // [team][member but one][eight][lane]
  std::byte *ring, *tokens;

  static constexpr int barriers = 2 * grouped_most_stages + 2 + grouped_teams;
  static constexpr int small_bytes = 8 * barriers + 16;
  __host__ __device__ static int sums_bytes(int eights) {
    return grouped_teams * (grouped_members - 1) * eights * 32 * 16;
  }
  __host__ __device__ static int fixed_bytes(const GroupedShape& shape) {
    const int bytes = small_bytes + sums_bytes(shape.eights) + 8 * shape.eights * shape.token_stride;
    return (bytes + 127) / 128 * 128;
  }
  __device__ GroupedRoom(std::byte* start, const GroupedShape& shape) {
    full = reinterpret_cast<Barrier*>(start);
    empty = full + grouped_most_stages;
    tokens_full = empty + grouped_most_stages;
    tokens_empty = tokens_full + 1;
    sums_read = tokens_empty + 1;
    share = reinterpret_cast<std::int32_t*>(sums_read + grouped_teams);
    sums = reinterpret_cast<float4*>(start + small_bytes);
    tokens = start + small_bytes + sums_bytes(shape.eights);
    ring = start + fixed_bytes(shape);
  }
};

// A group and those of its pairs that this block multiplies.
struct GroupedPass {
  int expert, place, rows, first, end;
};

// The blocks' shares are runs of pairs of about the same cost: a pair is read and decoded once for its group,
// and multiplied once for each eight tokens, which costs little beside.
struct GroupedShare {
  int first_group, first_pair, last_group, last_end;

  static __device__ int cost_of(int rows) {
    constexpr int base = 12;
    return rows > 0 ? base + (rows + 7) / 8 : 0;
  }
  // By one warp, into shared memory: where the shares of this block and of the next begin.
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

  // use(pass) for each group of the share.
  template <class Use>
  __device__ void for_each(const GroupedCall& call, Use&& use) const {
    for (int group = first_group; group <= last_group; ++group) {
      const int first = group == first_group ? first_pair : 0;
      const int end = group == last_group ? last_end : call.pairs;
      if (first >= end) continue;
      use(GroupedPass{.expert = __ldcg(call.group_expert + group),
                      .place = __ldcg(call.group_first + group),
                      .rows = __ldcg(call.group_rows + group),
                      .first = first,
                      .end = end});
    }
  }
};

// The team's next stage: every fourth is its own.
__device__ inline void advance(RingPlace& place, int stages) {
  place.stage += grouped_teams;
  if (place.stage < stages) return;
  place.stage -= stages;
  place.parity ^= 1u;
}

}  // namespace inferno::cuda
