// The kernel of stream.h for one codec. One warp copies, four teams of four multiply. A block's rows come in
// tiles of eight; a stage of the ring holds a tile or a part of its columns and belongs to one team, whose
// members multiply some chunks each. All sums meet in shared memory. The tensor cores multiply sixteen rows
// at once: a tile's eight rows of one chunk, and the same rows of another chunk. The other operand has eight
// columns, which a Codec uses so that each half finds its inputs.
//
// A Codec says which form of the input it wants and multiplies a warp's chunks of a tile: lane (g, t) gets
// its own part of the sum of row g, or all of it where `whole`.
#pragma once

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/stream_result.cuh"
#include "backend/cuda/kernels/stream_ring.cuh"
#include "backend/cuda/kernels/stream_route.cuh"

namespace inferno::cuda {

// Barriers of the block besides sync_multipliers().
__device__ inline void ring_is_ready(bool waits) {
  if (waits) {
    asm volatile("bar.sync 2, %0;" ::"n"(stream_threads + 32) : "memory");
  } else {
    asm volatile("bar.arrive 2, %0;" ::"n"(stream_threads + 32) : "memory");
  }
}
__device__ inline void experts_are_chosen() {
  asm volatile("bar.sync 3, %0;" ::"n"(stream_threads + 32) : "memory");
}

// The arguments come from memory that nobody has touched for a while. Every warp asks for another line of
// them, so that the first use of each does not wait for itself alone.
__device__ inline void touch_arguments(const StreamCall& call, int thread) {
  constexpr int line = 64, lines = (sizeof(StreamCall) + line - 1) / line;
  const auto* words = reinterpret_cast<const std::uint32_t*>(&call);
  for (int i = thread / 32; i < lines; i += stream_warps + 1) {
    asm volatile("" ::"r"(words[i * line / 4]));
  }
}

// Where a team's next stage is: in the ring, and what of the batch it holds.
struct TeamPlace {
  RingPlace ring;
  int part = 0, item = 0, choice = 0;

  __device__ explicit TeamPlace(int team) : ring{team}, part(team) {}
  __device__ void settle(int parts, int items) {
    while (part >= parts) {
      part -= parts;
      ++item;
    }
    while (item >= items) {
      item -= items;
      ++choice;
    }
  }
  __device__ void advance(const StreamShape& shape, int items) {
    part += stream_teams;
    settle(shape.parts, items);
    ring.stage += stream_teams;
    if (ring.stage < shape.stages) return;
    ring.stage -= shape.stages;
    ring.parity ^= 1u;
  }
  // From the end of a batch to the next one's begin.
  __device__ void rebase(int vectors, int items, int next_items) {
    item += (choice - vectors) * items;
    choice = 0;
    settle(1 << 30, next_items);
  }
};

// A warp's way through the ring.
template <class Codec>
struct StreamWarp {
  const StreamCall& call;
  const StreamRoom& room;
  const int member, lane;
  TeamPlace at;
  typename Codec::Inputs in = {};
  int loaded = -1;  // what `in` was loaded for

  __device__ StreamWarp(const StreamCall& c, const StreamRoom& r, int thread)
      : call(c),
        room(r),
        member(thread / 32 % stream_members),
        lane(thread % 32),
        at(thread / 32 / stream_members) {}

  __device__ float multiply_stage() {
    const StreamShape& shape = call.shape;
    const int first = member * shape.each;
    const int count = max(0, min(shape.each, shape.chunks_of(at.part) - first));
    const int input = at.choice * shape.chunks + at.part * shape.part_chunks + first;
    if (count > 0 && input != loaded) {
      in.load(room, input, count, lane);
      loaded = input;
    }
    wait(room.full + at.ring.stage, at.ring.parity);
    float sum = 0.0f;
    if (count > 0) {
      const std::byte* stage = room.ring + at.ring.stage * shape.stage_bytes();
      sum = Codec::multiply(stage + first * shape.chunk_bytes, count, in, lane);
    }
    __syncwarp();
    if (lane == 0) arrive(room.empty + at.ring.stage);
    if constexpr (!Codec::whole) {
      sum += __shfl_xor_sync(full_warp, sum, 1);
      sum += __shfl_xor_sync(full_warp, sum, 2);
    }
    return sum;
  }

  // All stages of a batch that are this team's.
  __device__ void multiply_batch(float* reduced, int items) {
    const StreamShape& shape = call.shape;
    const int stride = shape.slots + 1;
    while (at.choice < call.vectors) {
      const float share = call.shares != nullptr ? room.shares[at.choice] : 1.0f;
      const float sum = share * multiply_stage();
      if (lane % 4 == 0) {  // lanes t = 0 keep rows g
        const int slot = (at.choice * shape.parts + at.part) * stream_members + member;
        reduced[(at.item * tiles::tile_rows + lane / 4) * stride + slot] = sum;
      }
      at.advance(shape, items);
    }
  }
};

// What a thread that multiplies knows when the product begins.
struct StreamKnown {
  StreamOperands operands;
  RouterColumns router;
};

template <class Codec, StreamMode mode>
__device__ void multiply(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                         StreamKnown& known, int thread) {
  StreamWarp<Codec> warp(call, room, thread);
  const int most = call.shape.batch;
  float square = 0.0f;
  int turn = 0;
  for (int batch = 0; batch < share.items; batch += most, turn ^= 1) {
    const int items = min(most, share.items - batch);
    float* reduced = room.reduced + turn * StreamRoom::batch_floats;
    if (batch > 0) {
      known.operands = operands_of<mode>(call, room, share, batch, thread);
      known.operands.template read_residual<mode>(call);
      if (mode == StreamMode::add) known.operands.join_biases(call, room);
      warp.at.rebase(call.vectors, most, items);
    } else {
      warp.at.settle(call.shape.parts, items);
    }
    warp.multiply_batch(reduced, items);
    sync_multipliers();
    // The sums of the batch after this one go elsewhere; those of the one after that wait for its end.
    square += write_result<mode>(call, room, reduced, known.operands, *room.inverse, batch, thread);
  }
  if constexpr (mode == StreamMode::add) {
    square = warp_sum(square);
    if (thread % 32 == 0) room.small[thread / 32] = square;
    sync_multipliers();
    write_parts(call, room, share, known.router, thread);
  }
}

// Behind the kernel before: its results, and the choice of experts. Everything is asked for before anything
// is used.
template <class Codec, StreamMode mode>
__device__ void prepare(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                        StreamKnown& known, RouterSums& logits, int thread) {
  const bool routes = mode == StreamMode::gated && call.routing.parts.logits != nullptr;
  const bool chosen = mode == StreamMode::add && call.experts != nullptr && thread < call.active;
  const int lane = thread % 32;
  const bool measures = thread >= stream_threads - 32;  // a warp that has little or nothing to stage
  wait_for_previous();
  SquareParts squares;
  if (routes) logits.load(call.routing, thread);
  if (measures) squares.load(call.norm, lane);
  const std::int32_t expert = chosen ? __ldcg(call.experts + thread) : 0;
  const float part = chosen ? __ldcg(call.shares + thread) : 0.0f;
  known.operands.template read_residual<mode>(call);
  stage_input<Codec::form, mode == StreamMode::add ? 4 : 2>(call, room, thread);
  if (chosen) {
    room.chosen[thread] = expert;
    room.shares[thread] = part;
  }
  if (measures) {
    const float inverse = squares.inverse_rms(call.norm, lane);
    if (lane == 0) *room.inverse = inverse;
  }
  if (routes) {
    const Choice choice = route_here(call, room, logits, thread);
    experts_are_chosen();
    if (blockIdx.x == 0 && thread < 32) choice.publish(call.routing, room.small, lane);
    let_next_start();
    known.operands = operands_of<mode>(call, room, share, 0, thread);
  } else {
    sync_multipliers();
    if (mode == StreamMode::add) known.operands.join_biases(call, room);
  }
  if (mode == StreamMode::add && call.undecided != nullptr && blockIdx.x == 0 &&
      thread < stream_most_active) {
    __stcg(call.undecided + thread, -1);
  }
}

template <class Codec, StreamMode mode>
__device__ void multiply_warps(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                               int thread) {
  const bool routes = mode == StreamMode::gated && call.routing.parts.logits != nullptr;
  // What does not depend on the kernel before is asked for ahead of everything: a first touch takes a
  // while.
  StreamKnown known;
  if (thread < 8) reinterpret_cast<float*>(room.zeros)[thread] = 0.0f;
  if (mode == StreamMode::add && call.experts != nullptr) {
    const std::int32_t early = read_choice_early(call, thread % 32);
    if (thread < 32) room.chosen[thread] = early;
    sync_multipliers();
  }
  RouterSums logits;
  if (routes) {
    logits.load_bias(call.routing, thread);
  } else {
    known.operands = operands_of<mode>(call, room, share, 0, thread);
  }
  if (mode == StreamMode::add && call.router_logits != nullptr) known.router.load(call, share, thread);
  ring_is_ready(/*waits=*/true);
  prepare<Codec, mode>(call, room, share, known, logits, thread);
  multiply<Codec, mode>(call, room, share, known, thread);
}

// The warp that copies.
template <StreamMode mode>
__device__ void fill_ring(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                          bool routes, int lane) {
  RingFiller<mode> filler = {call, room, share, lane};
  filler.start_barriers();
  ring_is_ready(/*waits=*/false);
  std::int32_t* chosen = nullptr;
  if (routes) {  // which experts' weights are read is known only then
    experts_are_chosen();
    let_next_start();
  } else if (mode == StreamMode::add && call.experts != nullptr) {
    chosen = room.chosen + stream_most_active;
    chosen[lane] = read_choice_early(call, lane);
    __syncwarp();
  }
  filler.run(chosen);
}

template <class Codec, StreamMode mode>
__global__ void __launch_bounds__(stream_threads + 32, 1)
    stream_kernel(const __grid_constant__ StreamCall call) {
  extern __shared__ __align__(128) std::byte memory[];
  const int thread = static_cast<int>(threadIdx.x);
  touch_arguments(call, thread);
  const StreamRoom room(memory, call.vectors * call.cols);
  const StreamShare share = share_of<mode>(call);
  const bool routes = mode == StreamMode::gated && call.routing.parts.logits != nullptr;
  if (!routes) let_next_start();
  if (thread < stream_threads) return multiply_warps<Codec, mode>(call, room, share, thread);
  fill_ring<mode>(call, room, share, routes, thread % 32);
}

template <class Codec>
void start_stream(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  const auto begin = [&](auto* kernel) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    launch(queue,
           {.grid = dim3(static_cast<unsigned>(blocks)),
            .threads = stream_threads + 32,
            .shared = static_cast<std::size_t>(shared)},
           kernel, call);
  };
  if (mode == StreamMode::plain) return begin(stream_kernel<Codec, StreamMode::plain>);
  if (mode == StreamMode::gated) return begin(stream_kernel<Codec, StreamMode::gated>);
  begin(stream_kernel<Codec, StreamMode::add>);
}

// One translation unit each.
using StartStream = void(const Queue&, const StreamCall&, StreamMode, int blocks, int shared);
StartStream stream_bf16, stream_f16, stream_q8_0, stream_mxfp4, stream_q4_k;

}  // namespace inferno::cuda
