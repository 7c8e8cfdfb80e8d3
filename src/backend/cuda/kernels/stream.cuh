// The kernel of stream.h for one codec. Four warps copy, sixteen multiply. A block's rows come in pairs of
// tiles of eight; for each pair and panel of columns a stage of the ring holds sixteen pieces of rows. Every
// warp takes some blocks of 32 columns of each piece. The tensor cores multiply sixteen rows at once: weights
// are the operand of sixteen rows, and of the eight columns of the other one each belongs to one block. So
// every block has a sum of its own, to which its scale is applied once.
//
// A Codec says how a group of two blocks is decoded (add_group), which columns its lanes hold (input), and
// what a block's scale is (finish).
#pragma once

#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/stream_input.cuh"
#include "backend/cuda/kernels/stream_result.cuh"

namespace inferno::cuda {

// A copying warp: four rows of every stage, and the scales that belong to them. A lane looks up one pair of
// tiles of a batch, so that little is left to do for a stage.
template <StreamMode mode>
struct RingFiller {
  static constexpr int rows_each = 16 / stream_fillers;
  const StreamCall& call;
  const StreamRoom& room;
  int own, lane;                         // which of the copying warps
  RingPlace next = {0, 1}, landed = {};  // the first time round every stage is free
  int on_their_way = 0;

  struct Tile {
    const std::byte* data;  // this warp's first row
    int rows, all;          // of them; of all copying warps
  };
  __device__ Tile look_up(const StreamShare& share, int pair) const {
    if (pair >= share.pairs) return {};
    const StreamTile low = tile_of<mode>(call, room, share, pair, 0);
    const StreamTile high = tile_of<mode>(call, room, share, pair, 1);
    const StreamTile& tile = own * rows_each < 8 ? low : high;
    const int first = own * rows_each % 8;
    return {tile.data + first * call.row_bytes, tile.rows - first, low.rows + high.rows};
  }
  __device__ static Tile from_lane(const Tile& tile, int lane) {
    const auto bits = reinterpret_cast<unsigned long long>(tile.data);
    return {reinterpret_cast<const std::byte*>(__shfl_sync(full_warp, bits, lane)),
            __shfl_sync(full_warp, tile.rows, lane), __shfl_sync(full_warp, tile.all, lane)};
  }

  __device__ void fill_stage(const Tile& tile, int column, int cols) {
    const StreamShape& shape = call.shape;
    const int block = column / 32, blocks = cols / 32;
    // The last piece of a row runs into its padding.
    const int piece = shape.row_copy > 0 ? shape.row_copy : (blocks * shape.block_bytes + 15) / 16 * 16;
    const int tail_piece = shape.tail_stride > 0 ? (blocks * shape.tail_bytes + 15) / 16 * 16 : 0;
    const std::byte* from = tile.data + block * shape.block_bytes;
    const std::byte* tail = tile.data + shape.tail_at + block * shape.tail_bytes;
    std::byte* stage = room.ring + next.stage * shape.stage_bytes;
    std::byte* to = stage + own * rows_each * shape.stride;
    std::byte* tail_to = stage + 16 * shape.stride + own * rows_each * shape.tail_stride;
    Barrier* full = room.full + next.stage;
    if (on_their_way == shape.ahead) {
      wait(room.full + landed.stage, landed.parity);
      landed.advance(shape.stages);
    } else {
      ++on_their_way;
    }
    wait(room.empty + next.stage, next.parity);
    if (lane == 0) {
      if (own == 0) arrive_expecting(full, static_cast<std::uint32_t>(tile.all * (piece + tail_piece)));
#pragma unroll
      for (int r = 0; r < rows_each; ++r) {
        if (r >= tile.rows) break;
        bulk_copy(to + r * shape.stride, from + r * call.row_bytes, static_cast<std::uint32_t>(piece), full);
        if (tail_piece > 0) {
          bulk_copy(tail_to + r * shape.tail_stride, tail + r * call.row_bytes,
                    static_cast<std::uint32_t>(tail_piece), full);
        }
      }
    }
    __syncwarp();
    next.advance(shape.stages);
  }

  __device__ void run(const StreamShare& share) {
    const StreamShape& shape = call.shape;
    const bool chosen = mode == StreamMode::add && call.experts != nullptr;
    for (int batch = 0; batch < share.pairs; batch += stream_batch) {
      const int pairs = min(stream_batch, share.pairs - batch);
      const Tile mine = look_up(share, lane < pairs ? batch + lane : share.pairs);
      for (int choice = 0; choice < call.vectors; ++choice) {
        const std::int64_t expert = chosen ? room.chosen[choice] * call.expert_bytes : 0;
        for (int panel = 0; panel < shape.panels; ++panel) {
          for (int pair = 0; pair < pairs; ++pair) {
            Tile tile = from_lane(mine, pair);
            tile.data += expert;
            for (int part = 0; part < shape.parts; ++part) {
              const int column = panel * shape.panel_cols + part * shape.part_cols;
              const int cols = min(shape.part_cols, call.cols - column);
              if (cols > 0) fill_stage(tile, column, cols);
            }
          }
        }
      }
    }
  }
};

// Codecs whose lanes hold half a block, sixteen columns in order.
__device__ inline void half_block_input(std::uint32_t (&b)[8], const std::uint16_t* x, int column, int t) {
  uint4 v = make_uint4(0, 0, 0, 0), w = v;
  if (column == t / 2) {
    v = reinterpret_cast<const uint4*>(x + 16 * t)[0];
    w = reinterpret_cast<const uint4*>(x + 16 * t)[1];
  }
  b[0] = v.x, b[1] = v.y, b[2] = v.z, b[3] = v.w;
  b[4] = w.x, b[5] = w.y, b[6] = w.z, b[7] = w.w;
}

// f16 pairs.
__device__ inline std::uint32_t add_f16(std::uint32_t a, std::uint32_t b) {
  std::uint32_t out;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(out) : "r"(a), "r"(b));
  return out;
}
__device__ inline std::uint32_t fused_f16(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  std::uint32_t out;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(out) : "r"(a), "r"(b), "r"(c));
  return out;
}

// The B operands of a warp for a panel: lane (g, t) holds column g, i.e. block g, and zeros for all others.
template <class Codec>
struct StreamInputs {
  std::uint32_t b[Codec::parts][Codec::groups][8];
  float2 factors = {0.0f, 0.0f},
         sums = {0.0f, 0.0f};  // of blocks 2t and 2t + 1, as the sums of products lie in lanes
  int first = 0;               // block of a stage that is the warp's first
  int counts[Codec::parts];    // blocks that it has in each stage; -1: there is no such stage

  __device__ void load(const StreamCall& call, const StreamRoom& room, int choice, int panel, int warp,
                       int lane) {
    const StreamShape& shape = call.shape;
    const int g = lane / 4, t = lane % 4;
    first = warp * shape.blocks_each;
#pragma unroll
    for (int part = 0; part < Codec::parts; ++part) {
      const int column = panel * shape.panel_cols + part * shape.part_cols;
      const int cols = part < shape.parts ? min(shape.part_cols, call.cols - column) : 0;
      counts[part] = cols <= 0 ? -1 : max(0, min(shape.blocks_each, cols / 32 - first));
      const int block = (choice * call.cols + column) / 32 + first;
#pragma unroll
      for (int i = 0; i < Codec::groups; ++i) {
        if (2 * i < counts[part]) Codec::input(b[part][i], room.in + 32 * (block + 2 * i), g - 2 * i, t);
      }
      if (Codec::scaled && part == 0 && counts[0] > 0) {
        const int own = block + min(2 * t, counts[0] - 2);
        factors = {room.factors[own], room.factors[own + 1]};
        if (Codec::sums && 2 * t < counts[0]) sums = {room.sums[own], room.sums[own + 1]};
      }
    }
  }
};

// Sums of sixteen rows over the warp's blocks of a panel: a lane's own part of rows g and g + 8.
template <class Codec>
__device__ float2 multiply_panel(const StreamCall& call, const StreamRoom& room,
                                 const StreamInputs<Codec>& in, RingPlace& at, int lane) {
  const StreamShape& shape = call.shape;
  const int g = lane / 4, t = lane % 4;
  float c[4] = {}, e[4] = {};
  float2 sums = {0.0f, 0.0f};
#pragma unroll
  for (int part = 0; part < Codec::parts; ++part) {
    if (in.counts[part] < 0) break;
    const std::byte* stage = room.ring + at.stage * shape.stage_bytes;
    const std::byte* low = stage + g * shape.stride;
    const std::byte* high = low + 8 * shape.stride;
    wait(room.full + at.stage, at.parity);
#pragma unroll
    for (int i = 0; i < Codec::groups; ++i) {
      if (2 * i < in.counts[part]) Codec::add_group(c, e, low, high, in.first + 2 * i, t, in.b[part][i]);
    }
    if (Codec::scaled && in.counts[part] > 0) {
      const int block = in.first + min(2 * t, in.counts[part] - 2);
      const bool apart = shape.tail_stride > 0;
      const std::byte* tail = apart ? stage + 16 * shape.stride + g * shape.tail_stride : low + shape.tail_at;
      const std::byte* tail_high = tail + 8 * (apart ? shape.tail_stride : shape.stride);
      sums = {Codec::finish({c[0], c[1]}, {e[0], e[1]}, low, tail, block, in.factors, in.sums),
              Codec::finish({c[2], c[3]}, {e[2], e[3]}, high, tail_high, block, in.factors, in.sums)};
    }
    __syncwarp();
    if (lane == 0) arrive(room.empty + at.stage);
    at.advance(shape.stages);
  }
  if constexpr (!Codec::scaled) sums = {c[0] + c[1] + e[0] + e[1], c[2] + c[3] + e[2] + e[3]};
  return sums;
}

// Lanes t = 0 keep rows g, lanes t = 1 rows g + 8.
__device__ inline void keep_sums(const StreamRoom& room, float2 sums, int pair, int warp, int lane,
                                 bool first, float share) {
  const bool odd = (lane & 1) != 0;
  float own = odd ? sums.y : sums.x;
  own += __shfl_xor_sync(full_warp, odd ? sums.x : sums.y, 1);
  own += __shfl_xor_sync(full_warp, own, 2);
  if (lane % 4 < 2) {
    float& kept = room.reduced[(pair * 16 + lane % 4 * 8 + lane / 4) * (stream_warps + 1) + warp];
    kept = first ? share * own : kept + share * own;
  }
}

template <class Codec, StreamMode mode>
__device__ void multiply(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                         float square_part, int thread) {
  const int lane = thread % 32, warp = thread / 32;
  RingPlace at;
  RouterColumns router;
  float square = 0.0f;
  if (mode == StreamMode::add && call.router_logits != nullptr) {
    router.load(call, share, call.parts[0].rows, thread);
  }
  for (int batch = 0; batch < share.pairs; batch += stream_batch) {
    const StreamOperands operands = operands_of<mode>(call, room, share, batch, thread);
    const int pairs = min(stream_batch, share.pairs - batch);
    for (int choice = 0; choice < call.vectors; ++choice) {
      const float part = call.vectors > 1 ? room.shares[choice] : 1.0f;
      for (int panel = 0; panel < call.shape.panels; ++panel) {
        StreamInputs<Codec> in;
        in.load(call, room, choice, panel, warp, lane);
        for (int pair = 0; pair < pairs; ++pair) {
          const float2 sums = multiply_panel<Codec>(call, room, in, at, lane);
          keep_sums(room, sums, pair, warp, lane, panel + choice == 0, part);
        }
      }
    }
    sync_multipliers();
    const float inverse = inverse_rms(call.norm, square_part);
    square += write_result<mode>(call, room, operands, inverse, thread);
    if (batch + stream_batch < share.pairs) sync_multipliers();
  }
  if constexpr (mode == StreamMode::add) {
    square = warp_sum(square);
    if (lane == 0) room.small[warp] = square;
    sync_multipliers();
    write_parts(call, room, share, call.parts[0].rows, router, thread);
  }
}

template <class Codec, StreamMode mode>
__global__ void __launch_bounds__(stream_threads + 32 * stream_fillers, 1)
    stream_kernel(const __grid_constant__ StreamCall call) {
  extern __shared__ __align__(128) std::byte memory[];
  const StreamRoom room(memory, call.vectors * call.cols);
  const StreamShare share = share_of<mode>(call);
  const int thread = static_cast<int>(threadIdx.x);
  let_next_start();
  if (thread == 0) {
    for (int i = 0; i < call.shape.stages; ++i) {
      start_barrier(room.full + i, 1);
      start_barrier(room.empty + i, stream_warps);
    }
    publish_barriers();
  }
  __syncthreads();
  const bool routes = mode == StreamMode::gated && call.routing.parts.logits != nullptr;
  const bool chosen = mode == StreamMode::add && call.experts != nullptr;
  const bool multiplies = thread < stream_threads;
  float square_part = 0.0f;
  if (multiplies || routes || chosen) wait_for_previous();
  if (multiplies) {
    square_part = squares_of_lane(call.norm, thread % 32);
    stage_input<Codec::scaled, Codec::sums>(call, room, thread);
  }
  // Which experts' weights are read is known only now.
  if (routes) route_here(call, room, square_part);
  if (chosen) read_choice(call, room);
  if (!multiplies) {
    RingFiller<mode>{call, room, thread / 32 - stream_warps, thread % 32}.run(share);
    wait_for_previous();
    return;
  }
  sync_multipliers();
  multiply<Codec, mode>(call, room, share, square_part, thread);
}

// What the host has to know of a codec to cut rows.
struct StreamTraits {
  int part_most, align;         // columns of a stage
  int parts;                    // stages of a panel
  int most_blocks;              // of a warp and a stage
  int stride_rest;              // strides are that modulo 128: neighbouring rows lie in other banks
  int piece_bytes, tail_bytes;  // of 32 columns
};

template <class Codec>
void start_stream(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  const auto begin = [&](auto* kernel) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    launch(queue,
           {.grid = dim3(static_cast<unsigned>(blocks)),
            .threads = stream_threads + 32 * stream_fillers,
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
