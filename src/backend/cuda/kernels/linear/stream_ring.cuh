// The warp that fills the ring of a stream kernel. Stages are filled in the order in which they are used: for
// each pair of tiles its parts.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/stream_call.cuh"

namespace inferno::cuda {

// One lane. To start a barrier takes a while, and a lane for each takes four times as long as one for all:
// one warp starts the full ones, another the empty ones.
__device__ inline void start_barriers(Barrier* barriers, int count, int arrivals) {
  for (int i = 0; i < count; ++i) start_barrier(barriers + i, arrivals);
  publish_barriers();
}

// One lane, whose first copies are on their way while the other warps still look around.
template <StreamMode mode>
struct RingFiller {
  const StreamCall& call;
  const StreamRoom& room;
  const StreamShare share;
  RingPlace next = {0, 1}, landed = {};
  int filled = 0, on_the_way = 0;
  bool begun = mode == StreamMode::experts;

  // `b`: null where a tile is alone.
  __device__ void fill_stage(const std::byte* a, const std::byte* b, std::uint32_t bytes) {
    const StreamShape& shape = call.shape;
    Barrier* full = room.full + next.stage;
    while (on_the_way >= (begun ? shape.ahead : shape.early)) {
      wait(room.full + landed.stage, landed.parity);
      landed.advance(shape.stages);
      --on_the_way;
      begun = begun || has_passed_already(room.begun, 0);
    }
    if (filled >= shape.stages) wait(room.empty + next.stage, next.parity);
    std::byte* to = room.ring + next.stage * shape.stage_bytes();
    arrive_expecting(full, b != nullptr ? 2 * bytes : bytes);
    bulk_copy(to, a, bytes, full, policy);
    if (b != nullptr) bulk_copy(to + shape.part_bytes(), b, bytes, full, policy);
    ++filled;
    ++on_the_way;
    next.advance(shape.stages);
  }

  __device__ void fill_pair(const std::byte* a, const std::byte* b) {
    const StreamShape& shape = call.shape;
    for (int part = 0; part < shape.parts; ++part) {
      fill_stage(a, b, static_cast<std::uint32_t>(shape.chunks_of(part) * shape.chunk_bytes));
      a += shape.part_bytes();
      if (b != nullptr) b += shape.part_bytes();
    }
  }

  // What can be known before experts are chosen.
  TilePlace place = place_of<mode>(call, share.first);
  std::uint64_t policy = read_once_policy();

  __device__ const std::byte* take_tile() {
    const std::byte* out = call.parts[place.part].data + place.tile * call.tile_bytes;
    ++place.tile;
    if (mode == StreamMode::plain && place.part + 1 < call.part_count &&
        call.parts[place.part].first_tile + place.tile == call.parts[place.part + 1].first_tile) {
      place = {0, place.part + 1};
    }
    return out;
  }

  __device__ void run(const std::int32_t* chosen) {
    for (int pair = 0; pair < share.pairs; ++pair) {
      if constexpr (is_gated(mode)) {
        std::int64_t offset = place.tile * call.tile_bytes;
        if (mode == StreamMode::experts) offset += chosen[place.choice] * call.expert_bytes;
        fill_pair(call.parts[0].data + offset, call.parts[1].data + offset);
        ++place.tile;
        if (mode == StreamMode::experts && place.tile == call.expert_tiles) {
          place = {0, 0, place.choice + 1};
        }
      } else if constexpr (mode == StreamMode::combine) {
        const std::byte* tile = take_tile();
        for (int choice = 0; choice < call.vectors; choice += 2) {
          const bool two = choice + 1 < call.vectors;
          fill_pair(tile + chosen[choice] * call.expert_bytes,
                    two ? tile + chosen[choice + 1] * call.expert_bytes : nullptr);
        }
      } else {
        const std::byte* tile = take_tile();
        fill_pair(tile, 2 * pair + 1 < share.tiles ? take_tile() : nullptr);
      }
    }
  }
};

// What the kernel before chose. It lies there before that kernel has ended; if it does not, -1 does: the
// kernel ahead of both wrote it (AddTo::undecided), and the one that chooses lets this one start only behind
// its own wait. An older choice is never seen.
__device__ inline std::int32_t read_choice_early(const StreamCall& call, int lane) {
  const auto read = [&] { return lane < call.active ? __ldcg(call.experts + lane) : 0; };
  const std::int32_t early = read();
  if (__all_sync(full_warp, early >= 0)) return early;
  wait_for_previous();
  return read();
}

}  // namespace inferno::cuda
