// The kernel of stream.h for one codec. One warp copies, fifteen multiply. A block's rows come in pairs of
// tiles of eight; a stage of the ring holds a pair, or some of its columns, of which every warp multiplies
// its own chunks. All sums meet in shared memory. The tensor cores multiply sixteen rows at once: the two
// tiles of a pair.
//
// A Codec says which form of the input it wants and multiplies a warp's chunks of a pair: its Sums give lane
// (g, t) its part of the sums of row g of both tiles, or all of them where `whole`. Sums<true> are those of
// two experts' tiles, each of which has its own input; otherwise both tiles have the same. `one_part`: only
// for shapes of which a stage holds all columns.
#pragma once

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/stream_epilogue.cuh"
#include "backend/cuda/kernels/linear/stream_producer.cuh"

namespace inferno::cuda {

// What a codec multiplies: `chunks` neighbouring ones of two tiles, the second `to_second` bytes behind the
// first. Where a tile is alone the second is left over from another; its sums are of no use.
struct StreamSlice {
  const std::byte* data;
  int to_second, chunks;
};

// A warp's way through the ring.
template <class Codec, StreamMode mode>
struct StreamConsumer {
  static constexpr bool combines = mode == StreamMode::combine;
  using Sums = typename Codec::template Sums<combines>;

  const StreamCall& call;
  const StreamSmem& smem;
  const int warp, lane;
  PipelineState at = {};
  int slot;  // which chunks of the next part are this warp's; goes round, so that all have as much to do
  typename Sums::Inputs in = {};
  int loaded = -1;      // what `in` was loaded for
  float shares = 0.0f;  // lane k: of the k-th expert

  __device__ StreamConsumer(const StreamCall& c, const StreamSmem& r, int thread)
      : call(c), smem(r), warp(thread / 32), lane(thread % 32), slot(warp) {}

  // `choice`: of the first tile's input; the second's is the next one when combining.
  __device__ void multiply_part(Sums& sums, int choice, int part) {
    const StreamShape& shape = call.shape;
    const int first = slot * shape.each;
    const int count = min(shape.each, (Codec::one_part ? shape.chunks : shape.chunks_of(part)) - first);
    const int input = choice * shape.chunks + part * shape.part_chunks + first;
    if (count > 0 && input != loaded) {
      in.load(smem, input, combines && choice + 1 < call.vectors ? input + shape.chunks : input, count, lane);
      loaded = input;
    }
    const std::byte* stage = smem.ring + at.stage * shape.stage_bytes() + first * shape.chunk_bytes;
    mbarrier_wait(smem.full + at.stage, at.parity);
    if (count > 0) sums.add({stage, shape.part_bytes(), count}, in, lane);
    __syncwarp();
    mbarrier_arrive_warp(smem.empty + at.stage, lane);
    at.advance(shape.stages);
  }

  // All columns of a pair.
  __device__ void multiply(Sums& sums, int choice) {
    if constexpr (Codec::one_part) {
      multiply_part(sums, choice, 0);
    } else {
      for (int part = 0; part < call.shape.parts; ++part) {
        multiply_part(sums, choice, part);
        slot -= call.shape.used;
        if (slot < 0) slot += stream_warps;
      }
    }
  }

  // Lane (g, t) gets its part of row g: of the first tile where t is even, of the second where it is odd.
  // Combining, both are the same row, of two experts.
  __device__ float multiply_pair() {
    if constexpr (combines) {
      float row = 0.0f;
      for (int choice = 0; choice < call.vectors; choice += 2) {
        Sums sums;
        multiply(sums, choice);
        const float2 own = sums.rows(lane);
        row += __shfl_sync(full_warp, shares, choice) * own.x;
        const float second = __shfl_sync(full_warp, shares, (choice + 1) % 32);
        if (choice + 1 < call.vectors) row += second * own.y;
      }
      if constexpr (!Codec::whole) row += __shfl_xor_sync(full_warp, row, 1);
      return Codec::whole ? row : row + __shfl_xor_sync(full_warp, row, 2);
    } else {
      Sums sums;
      multiply(sums, 0);
      const float2 rows = sums.rows(lane);
      const bool odd = lane % 2 != 0;
      float kept = odd ? rows.y : rows.x;
      if constexpr (!Codec::whole) {
        kept += __shfl_xor_sync(full_warp, odd ? rows.x : rows.y, 1);
        kept += __shfl_xor_sync(full_warp, kept, 2);
      }
      return kept;
    }
  }

  __device__ void multiply_batch(float* reduced, int pairs) {
    float* own = reduced + warp * StreamSmem::warp_floats + tiles::tile_rows * (lane % 4) + lane / 4;
    for (int pair = 0; pair < pairs; ++pair, own += 2 * tiles::tile_rows) {
      const float sum = multiply_pair();
      if (lane % 4 < (combines ? 1 : 2)) *own = sum;
    }
  }
};

// Behind the kernel before: its results. Everything is asked for before anything is used.
template <class Codec, StreamMode mode>
__device__ void prepare(const StreamCall& call, const StreamSmem& smem, StreamConsumer<Codec, mode>& warp,
                        EpilogueOperands& operands, int thread) {
  const int lane = thread % 32;
  // A warp that has little or nothing to stage and to write.
  const bool measures = mode != StreamMode::experts && thread >= stream_threads - 32;
  consumers_can_start(/*waits=*/true);
  wait_for_previous();
  if (thread == 0) mbarrier_arrive(smem.predecessor_done);
  PartialSquares squares;
  if (measures) squares.load(call.norm, lane);
  if (mode == StreamMode::combine && lane < call.active) warp.shares = __ldcg(call.shares + lane);
  if constexpr (is_adding(mode)) operands.read_residual(call);
  stage_input<Codec::form, mode == StreamMode::combine ? 3 : 2>(call, smem, thread);
  if (measures) {
    const float inverse = squares.inverse_rms(call.norm, lane);
    if (lane == 0) *smem.inverse = inverse;
  }
  sync_consumers();
  if (mode == StreamMode::experts && thread < stream_epilogue_threads) mbarrier_wait(smem.routed, 0);
  if (blockIdx.x != 0) return;
  if (mode == StreamMode::add && call.undecided != nullptr && thread < stream_max_active) {
    __stcg(call.undecided + thread, -1);
  }
  // The logits have been read: the next layer's are added to zeros.
  if (mode == StreamMode::combine && thread < call.routing.experts) __stcg(call.routing.sums + thread, 0);
}

template <class Codec, StreamMode mode>
__device__ void run_consumers(const StreamCall& call, const StreamSmem& smem, const StreamWork& share,
                              int thread) {
  if (thread < 32) {
    if (thread == 0) {
      mbarrier_init(smem.predecessor_done, 1);
      if (mode == StreamMode::experts) mbarrier_init(smem.routed, warp_arrivals);
      init_barriers(smem.empty, call.shape.stages, stream_warps * warp_arrivals);
    }
    __syncwarp();
    producer_can_start(/*waits=*/false);
  }
  // What does not depend on the kernel before is asked for ahead of everything: a first touch takes a while.
  if (thread < 8) reinterpret_cast<float*>(smem.zeros)[thread] = 0.0f;
  if (mode == StreamMode::combine) {
    const std::int32_t early = read_choice_early(call, thread % 32);
    if (thread < 32) smem.chosen[thread] = early;
    sync_consumers();
  }
  if (mode == StreamMode::combine && call.in_factor > 0.0f) {
    for (int i = thread; i < call.vectors * call.cols / 32; i += stream_threads)
      smem.factors[i] = call.in_factor;
  }
  RouterSlice router;
  if (mode == StreamMode::add && call.router_sums != nullptr) {
    if (thread < stream_router_rows) smem.scaled[thread] = 0.0f;
    router.load(call, share, thread);
  }
  StreamConsumer<Codec, mode> warp(call, smem, thread);
  EpilogueOperands operands;
  float square = 0.0f;
  int turn = 0;
  for (int batch = 0; batch < share.pairs; batch += stream_batch, turn ^= 1) {
    if (mode == StreamMode::experts && batch == 0) prepare(call, smem, warp, operands, thread);
    operands = epilogue_operands<mode>(call, smem, share, batch, thread);
    if (mode != StreamMode::experts && batch == 0) {
      prepare(call, smem, warp, operands, thread);
    } else if (is_adding(mode)) {
      operands.read_residual(call);
    }
    if (mode == StreamMode::combine) operands.join_biases(call, smem, warp.shares);
    if (mode == StreamMode::add && batch == 0) router.read(call);
    float* reduced = smem.reduced + turn * StreamSmem::batch_floats;
    warp.multiply_batch(reduced, min(stream_batch, share.pairs - batch));
    sync_consumers();
    // The sums of the batch after this one go elsewhere; those of the one after that wait for its end.
    square += write_result<mode>(call, smem, reduced, operands, batch, thread);
  }
  if constexpr (is_adding(mode)) {
    square = warp_sum(square);
    if (thread % 32 == 0) smem.squares[thread / 32] = square;
    sync_consumers();
    write_partials<mode>(call, smem, router, thread);
  }
}

// The warp that copies.
template <StreamMode mode>
__device__ void run_producer(const StreamCall& call, const StreamSmem& smem, const StreamWork& share,
                             int lane) {
  StreamProducer<mode> producer = {call, smem, share};
  if (lane == 0) init_barriers(smem.full, call.shape.stages, 1);
  __syncwarp();
  producer_can_start(/*waits=*/true);
  consumers_can_start(/*waits=*/false);
  std::int32_t* chosen = smem.chosen + stream_max_active;
  if constexpr (mode == StreamMode::experts) {  // which weights are read is known only then
    Router router(call.routing, lane);
    wait_for_previous();
    const float inverse = router.read(call.norm);
    const Router::Choice choice = router.choose(smem.chosen);
    chosen = smem.chosen;
    if (lane == 0) *smem.inverse = inverse;
    __syncwarp();
    mbarrier_arrive_warp(smem.routed, lane);
    if (blockIdx.x == gridDim.x - 1) router.publish(choice);  // the block that has least to do
    let_next_start();
  } else if constexpr (mode == StreamMode::combine) {
    chosen[lane] = read_choice_early(call, lane);
    __syncwarp();
  }
  if (lane == 0) producer.run(chosen);
}

template <class Codec, StreamMode mode>
__global__ void __launch_bounds__(640, 1)  // not so many, but no more registers than for so many
    stream_kernel(const __grid_constant__ StreamCall call) {
  extern __shared__ __align__(128) std::byte memory[];
  const int thread = static_cast<int>(threadIdx.x);
  const StreamSmem smem(memory, call.vectors * call.cols);
  const StreamWork share = work_of<mode>(call);
  if (mode != StreamMode::experts) let_next_start();
  if (thread < stream_threads) return run_consumers<Codec, mode>(call, smem, share, thread);
  run_producer<mode>(call, smem, share, thread % 32);
}

template <class Codec>
void launch_stream(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  const auto begin = [&](auto* kernel) {
    // What other shapes need as well: recorded steps have several.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, queue.shared_limit));
    launch(queue,
           {.grid = dim3(static_cast<unsigned>(blocks)),
            .threads = stream_threads + 32,
            .shared = static_cast<std::size_t>(shared)},
           kernel, call);
  };
  switch (mode) {
    case StreamMode::plain: return begin(stream_kernel<Codec, StreamMode::plain>);
    case StreamMode::gated: return begin(stream_kernel<Codec, StreamMode::gated>);
    case StreamMode::experts: return begin(stream_kernel<Codec, StreamMode::experts>);
    case StreamMode::add: return begin(stream_kernel<Codec, StreamMode::add>);
    case StreamMode::combine: return begin(stream_kernel<Codec, StreamMode::combine>);
  }
}

// One translation unit each.
using StreamLauncher = void(const Queue&, const StreamCall&, StreamMode, int blocks, int shared);
StreamLauncher stream_bf16, stream_f16, stream_q8_0, stream_mxfp4, stream_q4_k;

}  // namespace inferno::cuda
