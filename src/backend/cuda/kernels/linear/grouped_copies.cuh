// The two warps of a grouped product that copy: weights into the ring, and tokens beside it.
#pragma once

#include "backend/cuda/kernels/linear/grouped_call.cuh"

namespace inferno::cuda {

// The order of copies: for each slab, for each round of four pairs, for each part, one of each pair's. Each
// team has stages of its own, every fourth: it has then seen a stage's last phase itself when it waits for
// the next. Of one ring for all it could ask for a stage whose phase before, another team's, had not yet
// arrived, and a barrier's parity cannot tell that from the one it wants.
template <class Codec, GroupedMode mode>
struct GroupedFiller {
  using Stage = GroupedStage<Codec::format>;
  const GroupedCall& call;
  const GroupedRoom& room;
  const std::uint64_t policy = read_once_policy();
  RingPlace next[grouped_teams] = {{0, 1}, {1, 1}, {2, 1}, {3, 1}};

  // By one lane.
  __device__ void fill(RingPlace& place, const std::byte* first, const std::byte* second,
                       std::uint32_t bytes) const {
    Barrier* full = room.full + place.stage;
    std::byte* to = room.ring + place.stage * Stage::bytes;
    wait(room.empty + place.stage, place.parity);
    arrive_expecting(full, 2 * bytes);
    bulk_copy(to, first, bytes, full, policy);
    bulk_copy(to + Stage::tile_bytes, second, bytes, full, policy);
    advance(place, call.shape.stages);
  }

  __device__ void run(const GroupedPass& pass) {
    const GroupedShape& shape = call.shape;
    const std::int64_t expert = pass.expert * call.expert_bytes;
    for (int slab = 0; slab < shape.slabs; ++slab) {
      const int chunks = shape.chunks_of(slab);
      for (int round = pass.first; round < pass.end; round += grouped_teams) {
        const int busy = min(grouped_teams, pass.end - round);
        for (int begin = 0; begin < chunks; begin += Stage::chunks) {
          const int bytes = min(Stage::chunks, chunks - begin) * Stage::chunk.bytes;
          const std::int64_t offset =
              expert + std::int64_t{slab * shape.slab_chunks + begin} * Stage::chunk.bytes;
#pragma unroll
          for (int team = 0; team < grouped_teams; ++team) {
            if (team < busy) fill_from(next[team], round + team, offset, static_cast<std::uint32_t>(bytes));
          }
        }
      }
    }
  }

  __device__ void fill_from(RingPlace& place, int pair, std::int64_t offset, std::uint32_t bytes) const {
    if constexpr (mode == GroupedMode::gated) {
      offset += pair * call.tile_bytes;
      fill(place, call.parts[0].data + offset, call.parts[1].data + offset, bytes);
    } else {
      const GroupedPart& part = part_of(call, pair);
      const int tile = 2 * (pair - part.first_pair);
      const int other = min(tile + 1, (part.rows - 1) / tiles::tile_rows);
      fill(place, part.data + offset + tile * call.tile_bytes, part.data + offset + other * call.tile_bytes,
           bytes);
    }
  }
};

// The tokens of one group at a time, a slab of their columns each, once nobody reads the ones before.
template <class Codec>
struct GroupedGatherer {
  static constexpr int chunk_cols = tiles::chunk_of(Codec::format).cols;
  const GroupedCall& call;
  const GroupedRoom& room;
  const int lane;
  const std::uint64_t policy = read_again_policy();
  RingPlace next = {0, 1};

  __device__ void run(const GroupedPass& pass) {
    const GroupedShape& shape = call.shape;
    const bool mine = lane < pass.rows;
    std::int64_t row = 0;
    if (mine) row = call.gather != nullptr ? __ldcg(call.gather + pass.place + lane) : pass.place + lane;
    for (int slab = 0; slab < shape.slabs; ++slab) {
      const int first = slab * shape.slab_chunks * chunk_cols;
      const int bytes = 2 * min(shape.slab_chunks * chunk_cols, call.cols - first);
      wait(room.tokens_empty, next.parity);
      if (lane == 0) arrive_expecting(room.tokens_full, static_cast<std::uint32_t>(pass.rows * bytes));
      __syncwarp();
      if (mine) {
        bulk_copy(room.tokens + lane * shape.token_stride, call.in + (row * call.cols + first) * 2,
                  static_cast<std::uint32_t>(bytes), room.tokens_full, policy);
      }
      next.advance(1);
    }
  }
};

}  // namespace inferno::cuda
