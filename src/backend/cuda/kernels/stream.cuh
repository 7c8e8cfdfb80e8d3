// The kernel of stream.h for one codec. One warp copies, sixteen multiply. A block's rows come in tiles of
// eight; every warp multiplies its own chunks of columns of a tile, and the warps' sums meet in shared
// memory. The tensor cores multiply sixteen rows at once: a tile's eight rows of one chunk, and the same rows
// of another chunk. The other operand has eight columns, which a Codec uses so that each half finds its
// inputs.
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

// Lanes t = 0 keep rows g.
template <bool whole>
__device__ void keep_sum(float* reduced, float sum, int item, int warp, int lane, bool first, float share) {
  if constexpr (!whole) {
    sum += __shfl_xor_sync(full_warp, sum, 1);
    sum += __shfl_xor_sync(full_warp, sum, 2);
  }
  if (lane % 4 == 0) {
    float& kept = reduced[(item * tiles::tile_rows + lane / 4) * (stream_warps + 1) + warp];
    kept = first ? share * sum : kept + share * sum;
  }
}

// A warp's way through the ring.
template <class Codec>
struct StreamWarp {
  const StreamCall& call;
  const StreamRoom& room;
  int warp, lane;
  RingPlace at;

  // The tiles of a batch for one input vector and panel.
  __device__ void multiply_panel(float* reduced, int items, int choice, int panel, float share) {
    const StreamShape& shape = call.shape;
    const int first = warp * shape.each, count = shape.chunks_from(panel, first, shape.each);
    const int own = warp / shape.warps, offset = warp % shape.warps * shape.each * shape.chunk_bytes;
    typename Codec::Inputs in;
    if (count > 0) {
      in.load(room, choice * shape.chunks + panel * shape.panel_chunks + first, count, lane);
    }
    for (int item = 0; item < items; ++item) {
      float sum = 0.0f;
      // Every warp goes through all stages in order, its own or not: so nobody is a phase ahead of another.
      for (int part = 0; part < shape.parts; ++part) {
        wait(room.full + at.stage, at.parity);
        if (part == own && count > 0) {
          sum = Codec::multiply(room.ring + at.stage * shape.stage_bytes() + offset, count, in, lane);
        }
        __syncwarp();
        if (lane == 0) arrive(room.empty + at.stage);
        at.advance(shape.stages);
      }
      keep_sum<Codec::whole>(reduced, sum, item, warp, lane, choice + panel == 0, share);
    }
  }
};

template <class Codec, StreamMode mode>
__device__ void multiply(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                         StreamOperands operands, const RouterColumns& router, float square_part,
                         int thread) {
  StreamWarp<Codec> warp = {call, room, thread / 32, thread % 32};
  float square = 0.0f;
  int turn = 0;
  for (int batch = 0; batch < share.items; batch += stream_batch, turn ^= 1) {
    const int items = min(stream_batch, share.items - batch);
    float* reduced = room.reduced + turn * StreamRoom::batch_floats;
    if (batch > 0) {
      operands = constants_of<mode>(call, room, share, batch, thread);
      operands.read_residual<mode>(call);
    }
    for (int choice = 0; choice < call.vectors; ++choice) {
      const float part = call.vectors > 1 ? room.shares[choice] : 1.0f;
      for (int panel = 0; panel < call.shape.panels; ++panel) {
        warp.multiply_panel(reduced, items, choice, panel, part);
      }
    }
    sync_multipliers();
    // The sums of the batch after this one go elsewhere; those of the one after that wait for its end.
    const float inverse = inverse_rms(call.norm, square_part);
    square += write_result<mode>(call, room, reduced, operands, inverse, thread);
  }
  if constexpr (mode == StreamMode::add) {
    square = warp_sum(square);
    if (thread % 32 == 0) room.small[thread / 32] = square;
    sync_multipliers();
    write_parts(call, room, share, call.parts[0].rows, router, thread);
  }
}

template <class Codec, StreamMode mode>
__device__ void multiply_warps(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                               int thread) {
  const bool routes = mode == StreamMode::gated && call.routing.parts.logits != nullptr;
  const bool chosen = mode == StreamMode::add && call.experts != nullptr;
  // What does not depend on the kernel before is asked for ahead of everything: a first touch takes a
  // while.
  StreamOperands operands;
  RouterColumns router;
  if (!routes && !chosen) operands = constants_of<mode>(call, room, share, 0, thread);
  if (mode == StreamMode::add && call.router_logits != nullptr) {
    router.load(call, share, call.parts[0].rows, thread);
  }
  ring_is_ready(/*waits=*/true);
  wait_for_previous();
  RouterSums logits;
  if (routes) logits.load(call.routing, thread);
  if (chosen) read_choice(call, room, thread);
  const float square_part = squares_of_lane(call.norm, thread % 32);
  operands.read_residual<mode>(call);
  stage_input<Codec::form>(call, room, thread);
  if (routes) {
    route_here(call, room, logits, square_part, thread);
    experts_are_chosen();
    let_next_start();
  } else {
    sync_multipliers();
  }
  if (routes || chosen) {
    operands = constants_of<mode>(call, room, share, 0, thread);
    operands.read_residual<mode>(call);
  }
  if (mode == StreamMode::add && call.undecided != nullptr && blockIdx.x == 0 &&
      thread < stream_most_active) {
    __stcg(call.undecided + thread, -1);
  }
  multiply<Codec, mode>(call, room, share, operands, router, square_part, thread);
}

template <class Codec, StreamMode mode>
__global__ void __launch_bounds__(stream_threads + 32, 1)
    stream_kernel(const __grid_constant__ StreamCall call) {
  extern __shared__ __align__(128) std::byte memory[];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  touch_arguments(call, thread);
  const StreamRoom room(memory, call.vectors * call.cols);
  const StreamShare share = share_of<mode>(call);
  const bool routes = mode == StreamMode::gated && call.routing.parts.logits != nullptr;
  if (!routes) let_next_start();
  if (thread < stream_threads) return multiply_warps<Codec, mode>(call, room, share, thread);
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

// What the host has to know of a codec to cut tiles.
struct StreamTraits {
  WeightFormat format;
  int most_chunks;  // of a warp
};

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
using StartStream = void (*)(const Queue&, const StreamCall&, StreamMode, int blocks, int shared);
struct StreamCodec {
  StreamTraits traits;
  StartStream start;
};
const StreamCodec& stream_bf16();
const StreamCodec& stream_f16();
const StreamCodec& stream_q8_0();
const StreamCodec& stream_mxfp4();
const StreamCodec& stream_q4_k();

}  // namespace inferno::cuda
