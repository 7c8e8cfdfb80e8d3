// The warp that fills the ring of a stream kernel. Stages are filled in the order in which they are used: for
// each batch of tiles, for each chosen expert, for each tile, its parts.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/stream_call.cuh"

namespace inferno::cuda {

// It waits for nobody to start with: barriers are its own to start, and the first copies are on their way
// while the other warps still look around. To start one takes a hundred cycles, so little else is done
// between two.
template <StreamMode mode>
struct RingFiller {
  const StreamCall& call;
  const StreamRoom& room;
  const StreamShare share;
  const int lane;
  const std::uint64_t policy = read_once_policy();
  RingPlace next = {0, 1}, landed = {};
  int filled = 0;

  // One lane: a barrier for each lane would take four times as long.
  __device__ void start_barriers() const {
    if (lane == 0) {
      for (int stage = 0; stage < call.shape.stages; ++stage) {
        start_barrier(room.full + stage, 1);
        start_barrier(room.empty + stage, stream_members);
      }
    }
    publish_barriers();
    __syncwarp();
  }

  __device__ void fill_stage(const std::byte* from, std::uint32_t bytes) {
    const StreamShape& shape = call.shape;
    Barrier* full = room.full + next.stage;
    if (filled >= shape.ahead) {
      wait(room.full + landed.stage, landed.parity);
      landed.advance(shape.stages);
    }
    if (filled >= shape.stages) wait(room.empty + next.stage, next.parity);
    if (lane == 0) {
      arrive_expecting(full, bytes);
      bulk_copy(room.ring + next.stage * shape.stage_bytes(), from, bytes, full, policy);
    }
    __syncwarp();
    ++filled;
    next.advance(shape.stages);
  }

  __device__ void fill_tile(const std::byte* tile) {
    const StreamShape& shape = call.shape;
    for (int part = 0; part < shape.parts; ++part, tile += shape.stage_bytes()) {
      fill_stage(tile, static_cast<std::uint32_t>(shape.chunks_of(part) * shape.chunk_bytes));
    }
  }

  // `chosen`: the experts whose rows are added up, one after another; null when there is one matrix.
  __device__ void run(const std::int32_t* chosen) {
    constexpr int at_once = 32;  // a lane looks up one tile
    for (int batch = 0; batch < share.items; batch += call.shape.batch) {
      const int end = min(batch + call.shape.batch, share.items);
      for (int choice = 0; choice < call.vectors; ++choice) {
        const std::int64_t expert = chosen != nullptr ? chosen[choice] * call.expert_bytes : 0;
        for (int first = batch; first < end; first += at_once) {
          const int items = min(at_once, end - first);
          const StreamTile mine = tile_of<mode>(call, room, share, first + min(lane, items - 1));
          const auto address = reinterpret_cast<unsigned long long>(mine.data);
          for (int item = 0; item < items; ++item) {
            const auto tile = __shfl_sync(full_warp, address, item);
            fill_tile(reinterpret_cast<const std::byte*>(tile) + expert);
          }
        }
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
