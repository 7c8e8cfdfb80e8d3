// The end of a stream kernel: sums of the warps become results. A thread has a row (of gated products: an
// element, which is a row of the gate and one of up).
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/stream_call.cuh"

namespace inferno::cuda {

// What a thread needs beside its sum, asked for before the weights are waited for.
struct StreamOperands {
  static constexpr int most_biases = 4;  // of chosen experts, asked for early
  int column = -1;                       // in the output; -1: this thread has none
  float biases[most_biases] = {};
  float residual = 0.0f, gain = 0.0f;

  // The only one that the kernel before may have written.
  template <StreamMode mode>
  __device__ void read_residual(const StreamCall& call) {
    if (mode == StreamMode::add && column >= 0) residual = __ldcg(call.residual + column);
  }
  // Of chosen experts that are added up one bias remains when their shares are known.
  __device__ void join_biases(const StreamCall& call, const StreamRoom& room) {
    if (call.experts == nullptr || call.bias == nullptr || column < 0) return;
    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < most_biases; ++k) {
      if (k < call.active) sum += room.shares[k] * biases[k];
    }
    for (int k = most_biases; k < call.active; ++k) {
      sum += room.shares[k] * __ldg(call.bias + room.chosen[k] * call.bias_stride + column);
    }
    biases[0] = sum;
  }
};

template <StreamMode mode>
__device__ StreamOperands operands_of(const StreamCall& call, const StreamRoom& room,
                                      const StreamShare& share, int first, int thread) {
  StreamOperands out;
  const int item = first + (mode == StreamMode::gated ? 2 : 1) * (thread / tiles::tile_rows);
  if (item >= share.items || item >= first + call.shape.batch) return out;
  const StreamTile tile = tile_of<mode>(call, room, share, item);
  if (thread % tiles::tile_rows >= tile.rows) return out;
  const int row = tile.row + thread % tiles::tile_rows;
  out.column = call.parts[tile.part].column + row;
  if constexpr (mode == StreamMode::gated) {
    const int hidden = call.parts[0].rows;
    out.column = tile.choice * hidden + row;
    if (call.bias != nullptr) {
      const std::int64_t expert = call.expert_tiles > 0 ? room.chosen[tile.choice] : 0;
      out.biases[0] = __ldg(call.bias + expert * call.bias_stride + row);
      out.biases[1] = __ldg(call.bias + expert * call.bias_stride + hidden + row);
    }
  } else if (call.bias != nullptr && call.experts != nullptr) {
#pragma unroll
    for (int k = 0; k < StreamOperands::most_biases; ++k) {
      if (k < call.active) out.biases[k] = __ldg(call.bias + room.chosen[k] * call.bias_stride + out.column);
    }
  } else if (call.bias != nullptr) {
    out.biases[0] = __ldg(call.bias + out.column);
  }
  if constexpr (mode == StreamMode::add) out.gain = __ldg(call.gain + out.column);
  return out;
}

__device__ inline float reduced_sum(const float* reduced, int slots, int row) {
  const float* own = reduced + row * (slots + 1);
  float sum = 0.0f;
#pragma unroll 4
  for (int slot = 0; slot < slots; ++slot) sum += own[slot];  // there are fours of them
  return sum;
}

// Returns the square of what was added up, for the norm behind. `batch`: its first item.
template <StreamMode mode>
__device__ float write_result(const StreamCall& call, const StreamRoom& room, const float* reduced,
                              const StreamOperands& with, float inverse, int batch, int thread) {
  const int slots = call.shape.slots;
  if constexpr (mode == StreamMode::gated) {
    if (with.column < 0) return 0.0f;
    const int row = thread / 8 * 16 + thread % 8;
    const float gate = reduced_sum(reduced, slots, row) * inverse + with.biases[0];
    const float up = reduced_sum(reduced, slots, row + 8) * inverse + with.biases[1];
    call.out.put(with.column, activated(gate, up, call.activation));
    return 0.0f;
  } else if constexpr (mode == StreamMode::plain) {
    if (with.column < 0) return 0.0f;
    call.out.put(with.column, reduced_sum(reduced, slots, thread) * inverse + with.biases[0]);
    return 0.0f;
  } else {
    float scaled = 0.0f, value = 0.0f;
    if (with.column >= 0) {
      value = with.residual + call.scale * (reduced_sum(reduced, slots, thread) * inverse + with.biases[0]);
      scaled = value * with.gain;
      call.residual[with.column] = value;
      call.out.put(with.column, scaled);
    }
    const int row = tiles::tile_rows * batch + thread;
    if (call.router_logits != nullptr && row < stream_router_rows) {
      room.small[stream_most_experts + row] = scaled;
    }
    return value * value;
  }
}

// Threads that share an expert's row of the router.
__host__ __device__ inline int router_lanes(int experts) {
  int lanes = 1;
  while (lanes < 32 && 2 * lanes * experts <= stream_threads) lanes *= 2;
  return lanes;
}

// This block's rows are neighbouring columns of the router: a thread's share of them, asked for early.
struct RouterColumns {
  static constexpr int most = 4;
  float weights[most] = {};

  __device__ void load(const StreamCall& call, const StreamShare& share, int thread) {
    const int lanes = router_lanes(call.router_experts), expert = thread / lanes;
    const int width = call.parts[0].rows, first = tiles::tile_rows * share.first;
    const int rows = min(tiles::tile_rows * share.count, width - first);
    if (expert >= call.router_experts) return;
#pragma unroll
    for (int i = 0; i < most; ++i) {
      const int at = thread % lanes + i * lanes;
      if (at < rows) weights[i] = call.router.get(place(call, expert, first + at, width));
    }
  }
  // Which of the router's elements that is.
  __device__ static std::int64_t place(const StreamCall& call, int expert, int column, int width) {
    if (call.router_tile == 0) return std::int64_t{expert} * width + column;
    const std::int64_t chunk = expert / tiles::tile_rows * call.router_tile + column / 64 * 1024;
    return (chunk + tiles::run_16_bit(expert % tiles::tile_rows, column / 8 % 8)) / 2 + column % 8;
  }
};

// Behind write_result and a barrier: this block's part of the squares and of the router's logits.
__device__ inline void write_parts(const StreamCall& call, const StreamRoom& room, const StreamShare& share,
                                   const RouterColumns& columns, int thread) {
  if (thread < 32) {
    const float sum = warp_sum(thread < stream_warps ? room.small[thread] : 0.0f);
    if (thread == 0) call.squares[blockIdx.x] = sum;
  }
  if (call.router_logits == nullptr) return;
  const int experts = call.router_experts, lanes = router_lanes(experts), expert = thread / lanes;
  const int rows = min(tiles::tile_rows * share.count, call.parts[0].rows - tiles::tile_rows * share.first);
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < RouterColumns::most; ++i) {
    const int at = thread % lanes + i * lanes;
    if (at < rows) sum += room.small[stream_most_experts + at] * columns.weights[i];
  }
  for (int offset = lanes / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(full_warp, sum, offset);
  if (expert < experts && thread % lanes == 0) {
    call.router_logits[std::int64_t{blockIdx.x} * experts + expert] = sum;
  }
}

}  // namespace inferno::cuda
