// The warp that fills the ring of a stream kernel. Stages are filled in the order in which they are used: for
// each batch of pairs of tiles, for each chosen expert, for each panel of columns, for each pair, its parts.
#pragma once

#include "backend/cuda/kernels/stream_call.cuh"

namespace inferno::cuda {

// One lane of it. It waits for nobody to start with: barriers are its own to start, and the first copies are
// on their way while the other warps still look around.
template <StreamMode mode>
struct RingFiller {
  const StreamCall& call;
  const StreamRoom& room;
  const StreamShare share;
  RingPlace next = {0, 1}, landed = {};  // the first time round every stage is free
  int on_their_way = 0;

  __device__ void start_barriers() const {
    for (int i = 0; i < call.shape.stages; ++i) {
      start_barrier(room.full + i, 1);
      start_barrier(room.empty + i, stream_warps);
    }
    publish_barriers();
  }

  __device__ void fill_stage(const std::byte* low, const std::byte* high, int panel, int part) {
    const StreamShape& shape = call.shape;
    const int first = part * shape.warps * shape.each;
    const int count = shape.chunks_from(panel, first, shape.warps * shape.each);
    const auto bytes = static_cast<std::uint32_t>(count * shape.chunk_bytes);
    const std::int64_t offset = std::int64_t{panel * shape.panel_chunks + first} * shape.chunk_bytes;
    std::byte* to = room.ring + next.stage * shape.stage_bytes();
    Barrier* full = room.full + next.stage;
    if (on_their_way == shape.ahead) {
      wait(room.full + landed.stage, landed.parity);
      landed.advance(shape.stages);
    } else {
      ++on_their_way;
    }
    wait(room.empty + next.stage, next.parity);
    arrive_expecting(full, high == nullptr ? bytes : 2 * bytes);
    if (bytes > 0) {
      bulk_copy(to, low + offset, bytes, full);
      if (high != nullptr) bulk_copy(to + shape.half_bytes(), high + offset, bytes, full);
    }
    next.advance(shape.stages);
  }

  __device__ void fill_pair(int pair, std::int64_t expert, int panel) {
    const StreamTile low = tile_of<mode>(call, room, share, pair, 0);
    const StreamTile high = tile_of<mode>(call, room, share, pair, 1);
    for (int part = 0; part < call.shape.parts; ++part) {
      fill_stage(low.data + expert, high.data == nullptr ? nullptr : high.data + expert, panel, part);
    }
  }

  // `chosen`: the experts whose rows are added up, one after another; null when there is one matrix.
  __device__ void run(const std::int32_t* chosen) {
    for (int batch = 0; batch < share.pairs; batch += stream_batch) {
      const int end = min(batch + stream_batch, share.pairs);
      for (int choice = 0; choice < call.vectors; ++choice) {
        const std::int64_t expert = chosen != nullptr ? chosen[choice] * call.expert_bytes : 0;
        for (int panel = 0; panel < call.shape.panels; ++panel) {
          for (int pair = batch; pair < end; ++pair) fill_pair(pair, expert, panel);
        }
      }
    }
  }
};

// What the kernel before chose. It lies there before that kernel has ended; if it does not, -1 does.
__device__ inline void read_choice_early(const StreamCall& call, std::int32_t* to) {
  bool decided = true;
  for (int k = 0; k < call.active; ++k) {
    to[k] = __ldcg(call.experts + k);
    decided = decided && to[k] >= 0;
  }
  if (decided) return;
  wait_for_previous();
  for (int k = 0; k < call.active; ++k) to[k] = __ldcg(call.experts + k);
}

}  // namespace inferno::cuda
