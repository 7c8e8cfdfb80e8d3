// The producer warp of a stream kernel: it fills the ring in the order of use, pair by pair and part by part,
// and it chooses the experts, because it needs the choice first.
#pragma once

#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/stream_input.cuh"

namespace inferno::cuda {

// Called by one lane: lanes of one warp that initialize a barrier each take four times as long. One warp
// initializes the full barriers, another the empty ones.
__device__ inline void init_barriers(Mbarrier* barriers, int count, int arrivals) {
  for (int i = 0; i < count; ++i) mbarrier_init(barriers + i, arrivals);
  fence_proxy_async();
}

// One lane, whose first copies are in flight while the other warps are still starting.
template <StreamMode mode>
struct StreamProducer {
  const StreamCall& call;
  const StreamSmem& smem;
  const StreamWork work;
  PipelineState next = {0, 1}, oldest = {};
  int filled = 0, in_flight_stages = 0;
  bool predecessor_done = mode == StreamMode::experts;

  // `b` is null if a tile has no partner.
  __device__ void fill_stage(const std::byte* a, const std::byte* b, std::uint32_t bytes) {
    const StreamShape& shape = call.shape;
    Mbarrier* full = smem.full + next.stage;
    while (in_flight_stages >= (predecessor_done ? shape.max_in_flight : shape.early_in_flight)) {
      mbarrier_wait(smem.full + oldest.stage, oldest.parity);
      oldest.advance(shape.stages);
      --in_flight_stages;
      predecessor_done = predecessor_done || mbarrier_test_wait(smem.predecessor_done, 0);
    }
    if (filled >= shape.stages) mbarrier_wait(smem.empty + next.stage, next.parity);
    std::byte* to = smem.ring + next.stage * shape.stage_bytes();
    mbarrier_arrive_expect_tx(full, b != nullptr ? 2 * bytes : bytes);
    bulk_copy(to, a, bytes, full, policy);
    if (b != nullptr) bulk_copy(to + shape.part_bytes(), b, bytes, full, policy);
    ++filled;
    ++in_flight_stages;
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

  // Known before the experts are chosen.
  TileIndex index = index_of<mode>(call, work.first);
  std::uint64_t policy = evict_first_policy();

  __device__ const std::byte* take_tile() {
    const std::byte* out = call.parts[index.part].data + index.tile * call.tile_bytes;
    ++index.tile;
    if (mode == StreamMode::plain && index.part + 1 < call.part_count &&
        call.parts[index.part].first_tile + index.tile == call.parts[index.part + 1].first_tile) {
      index = {0, index.part + 1};
    }
    return out;
  }

  __device__ void run(const std::int32_t* chosen) {
    for (int pair = 0; pair < work.pairs; ++pair) {
      if constexpr (is_gated(mode)) {
        std::int64_t offset = index.tile * call.tile_bytes;
        if (mode == StreamMode::experts) offset += chosen[index.choice] * call.expert_bytes;
        fill_pair(call.parts[0].data + offset, call.parts[1].data + offset);
        ++index.tile;
        if (mode == StreamMode::experts && index.tile == call.expert_tiles) {
          index = {0, 0, index.choice + 1};
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
        fill_pair(tile, 2 * pair + 1 < work.tiles ? take_tile() : nullptr);
      }
    }
  }
};

// The expert choice, read before the predecessor (mode experts) has ended. Until it is published, the slots
// hold -1, which the kernel before that one wrote (AddTo::undecided); the choosing kernel lets this one start
// only after its own wait. So a stale choice is never seen.
__device__ inline std::int32_t read_choice_early(const StreamCall& call, int lane) {
  const auto read = [&] { return lane < call.active ? __ldcg(call.experts + lane) : 0; };
  const std::int32_t early = read();
  if (__all_sync(full_warp, early >= 0)) return early;
  wait_for_previous();
  return read();
}

// Maps floats to unsigned integers of the same order.
__device__ inline std::uint32_t ordered(float value) {
  const std::uint32_t bits = __float_as_uint(value);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
__device__ inline float unordered(std::uint32_t key) {
  return __uint_as_float((key & 0x80000000u) != 0 ? key & 0x7FFFFFFFu : ~key);
}

// A lane has every 32nd expert.
struct Router {
  static constexpr int per_lane = stream_max_experts / 32;
  const Routing& routing;
  const int lane;
  float logits[per_lane] = {};  // initially the biases

  __device__ Router(const Routing& r, int l) : routing(r), lane(l) {
    if (routing.bias == nullptr) return;
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      if (lane + 32 * i < routing.experts) logits[i] = __ldg(routing.bias + lane + 32 * i);
    }
  }

  // Called after the wait for the predecessor. Returns 1 / rms.
  __device__ float read(const DelayedNorm& norm) {
    long long sums[per_lane] = {};
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      if (lane + 32 * i < routing.experts) sums[i] = __ldcg(routing.sums + lane + 32 * i);
    }
    PartialSquares squares;
    squares.load(norm, lane);
    const float inverse = squares.inverse_rms(norm, lane);
#pragma unroll
    for (int i = 0; i < per_lane; ++i) {
      if (32 * i < routing.experts) logits[i] += static_cast<float>(sums[i]) * (1.0f / route_unit) * inverse;
    }
    return inverse;
  }

  // The top-k experts, the lower number first among equals. Lane k gets the k-th.
  struct Choice {
    float logit = 0.0f;
    std::int32_t expert = 0;
  };
  __device__ Choice choose(std::int32_t* chosen) const {
    const Choice out = routing.experts <= 32 ? rank() : take_largest();
    chosen[lane] = out.expert;
    return out;
  }

  // Each lane counts the experts that rank before its own, all at once.
  __device__ Choice rank() const {
    const std::uint32_t key = lane < routing.experts ? ordered(logits[0]) : 0;
    int before = 0;
#pragma unroll
    for (int other = 0; other < 32; ++other) {
      const std::uint32_t theirs = __shfl_sync(full_warp, key, other);
      before += theirs > key || (theirs == key && other < lane) ? 1 : 0;
    }
    // Lane k looks for the expert that k others rank before. Ranks are unique.
    int owner = 0;
    for (int k = 0; k < routing.active; ++k) {
      const int found = __ffs(static_cast<int>(__ballot_sync(full_warp, before == k))) - 1;
      if (lane == k) owner = found;
    }
    return {__shfl_sync(full_warp, logits[0], owner), min(owner, routing.experts - 1)};
  }

  __device__ Choice take_largest() const {
    std::uint32_t keys[per_lane];
#pragma unroll
    for (int i = 0; i < per_lane; ++i) keys[i] = lane + 32 * i < routing.experts ? ordered(logits[i]) : 0;
    Choice out;
    for (int k = 0; k < routing.active; ++k) {
      std::uint32_t key = keys[0];
      int expert = lane;
#pragma unroll
      for (int i = 1; i < per_lane; ++i) {
        if (keys[i] <= key) continue;
        key = keys[i];
        expert = lane + 32 * i;
      }
      const std::uint32_t top = __reduce_max_sync(full_warp, key);
      const int best = __reduce_min_sync(full_warp, key == top ? expert : routing.experts);
      if (lane == k)
        // Clamped, so that NaN logits stay within bounds.
        out = {unordered(top), min(best, routing.experts - 1)};
#pragma unroll
      for (int i = 0; i < per_lane; ++i) {
        if (best == lane + 32 * i) keys[i] = 0;
      }
    }
    return out;
  }

  // Publishes the choice for the next kernel, which reads the experts before this kernel has ended: each slot
  // by itself says whether it is valid.
  __device__ void publish(const Choice& choice) const {
    if (lane < routing.active) __stcg(routing.chosen + lane, choice.expert);
    const float top = __shfl_sync(full_warp, choice.logit, 0);
    const float share = lane < routing.active ? expf(choice.logit - top) : 0.0f;
    float sum = share;
    if (!routing.renormalizes) {
      sum = 0.0f;
#pragma unroll
      for (int i = 0; i < per_lane; ++i)
        sum += lane + 32 * i < routing.experts ? expf(logits[i] - top) : 0.0f;
    }
    sum = warp_sum(sum);
    if (lane < routing.active) __stcg(routing.shares + lane, share / sum);
  }
};

}  // namespace inferno::cuda
