// The streaming kernel of stream.h for one codec: persistent and warp-specialized, one producer warp and
// fifteen consumer warps. A block's rows come in pairs of tiles of eight, the sixteen rows of an mma. A stage
// of the ring holds a pair, or some of its columns, and every consumer multiplies its own chunks of it
// (split-K). Sums are reduced in shared memory.
//
// A Codec defines the form of the input and multiplies a warp's chunks of a pair. Its Sums give lane (g, t)
// its part of the sums of row g of both tiles, or the complete sums if `whole`. Sums<true> is for tiles of
// two experts, each with its own input; otherwise both tiles have the same input. `one_part`: only for shapes
// whose columns fit in one stage.
#pragma once

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/stream_epilogue.cuh"
#include "backend/cuda/kernels/linear/stream_producer.cuh"

namespace inferno::cuda {

// The operand of a codec: `chunks` neighboring chunks of two tiles, the second `to_second` bytes after the
// first. If a tile has no partner, the second is stale and its sums are not used.
struct StreamSlice {
  const std::byte* data;
  int to_second, chunks;
};

// A consumer warp.
template <class Codec, StreamMode mode>
struct StreamConsumer {
  static constexpr bool combines = mode == StreamMode::combine;
  using Sums = typename Codec::template Sums<combines>;

  const StreamCall& call;
  const StreamSmem& smem;
  const int warp, lane;
  PipelineState at = {};
  int slot;  // this warp's chunks of the next part; rotates, so that all warps get equal work
  typename Sums::Inputs in = {};
  int loaded = -1;      // what `in` was loaded for
  float shares = 0.0f;  // lane k: routing weight of the k-th expert

  __device__ StreamConsumer(const StreamCall& c, const StreamSmem& r, int thread)
      : call(c), smem(r), warp(thread / 32), lane(thread % 32), slot(warp) {}

  // `choice`: of the first tile's input; when combining, the second tile's is the next one.
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

  // Returns lane (g, t)'s part of row g: of the first tile if t is even, of the second if it is odd.
  // Combining, both are the same row of two experts.
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

// Waits for the predecessor and reads its results. All loads are issued before any is used.
template <class Codec, StreamMode mode>
__device__ void prepare(const StreamCall& call, const StreamSmem& smem, StreamConsumer<Codec, mode>& warp,
                        EpilogueOperands& operands, int thread) {
  const int lane = thread % 32;
  // The last warp, which has the least to stage and to write.
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
  // The logits have been read: reset them for the next layer.
  if (mode == StreamMode::combine && thread < call.routing.experts) __stcg(call.routing.sums + thread, 0);
}

template <class Codec, StreamMode mode>
__device__ void run_consumers(const StreamCall& call, const StreamSmem& smem, const StreamWork& work,
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
  // What does not depend on the predecessor is loaded first: a first access takes long.
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
    router.load(call, work, thread);
  }
  StreamConsumer<Codec, mode> warp(call, smem, thread);
  EpilogueOperands operands;
  float square = 0.0f;
  int turn = 0;
  for (int batch = 0; batch < work.pairs; batch += stream_batch, turn ^= 1) {
    if (mode == StreamMode::experts && batch == 0) prepare(call, smem, warp, operands, thread);
    operands = epilogue_operands<mode>(call, smem, work, batch, thread);
    if (mode != StreamMode::experts && batch == 0) {
      prepare(call, smem, warp, operands, thread);
    } else if (is_adding(mode)) {
      operands.read_residual(call);
    }
    if (mode == StreamMode::combine) operands.combine_biases(call, smem, warp.shares);
    if (mode == StreamMode::add && batch == 0) router.read(call);
    float* reduced = smem.reduced + turn * StreamSmem::batch_floats;
    warp.multiply_batch(reduced, min(stream_batch, work.pairs - batch));
    sync_consumers();
    // The next batch's sums go to the other buffer; those of the batch after it wait at the barrier above.
    square += write_result<mode>(call, smem, reduced, operands, batch, thread);
  }
  if constexpr (is_adding(mode)) {
    square = warp_sum(square);
    if (thread % 32 == 0) smem.squares[thread / 32] = square;
    sync_consumers();
    write_partials<mode>(call, smem, router, thread);
  }
}

// The producer warp.
template <StreamMode mode>
__device__ void run_producer(const StreamCall& call, const StreamSmem& smem, const StreamWork& work,
                             int lane) {
  StreamProducer<mode> producer = {call, smem, work};
  if (lane == 0) init_barriers(smem.full, call.shape.stages, 1);
  __syncwarp();
  producer_can_start(/*waits=*/true);
  consumers_can_start(/*waits=*/false);
  std::int32_t* chosen = smem.chosen + stream_max_active;
  if constexpr (mode == StreamMode::experts) {  // the experts must be known before their weights are copied
    Router router(call.routing, lane);
    wait_for_previous();
    const float inverse = router.read(call.norm);
    const Router::Choice choice = router.choose(smem.chosen);
    chosen = smem.chosen;
    if (lane == 0) *smem.inverse = inverse;
    __syncwarp();
    mbarrier_arrive_warp(smem.routed, lane);
    if (blockIdx.x == gridDim.x - 1) router.publish(choice);  // the last block has the least work
    let_next_start();
  } else if constexpr (mode == StreamMode::combine) {
    chosen[lane] = read_choice_early(call, lane);
    __syncwarp();
  }
  if (lane == 0) producer.run(chosen);
}

template <class Codec, StreamMode mode>
__global__ void __launch_bounds__(640, 1)  // 512 threads run; 640 caps registers at 96
    stream_kernel(const __grid_constant__ StreamCall call) {
  extern __shared__ __align__(128) std::byte memory[];
  const int thread = static_cast<int>(threadIdx.x);
  const StreamSmem smem(memory, call.vectors * call.cols);
  const StreamWork work = work_of<mode>(call);
  if (mode != StreamMode::experts) let_next_start();
  if (thread < stream_threads) return run_consumers<Codec, mode>(call, smem, work, thread);
  run_producer<mode>(call, smem, work, thread % 32);
}

template <class Codec>
void launch_stream(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  const auto begin = [&](auto* kernel) {
    // The largest size that any shape needs, because recorded graphs contain several shapes.
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

}  // namespace inferno::cuda
