// The epilogue of a stream kernel: the warps' sums become results. One thread per row (gated: per element,
// which is a gate row and an up row).
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/linear/stream_call.cuh"

namespace inferno::cuda {

// What a thread needs besides its sum, loaded before the weights arrive.
struct EpilogueOperands {
  static constexpr int max_biases = 4;  // biases of chosen experts that are loaded early
  int column = -1;                      // output column; -1: this thread has none
  float biases[max_biases] = {};
  float residual = 0.0f, gain = 0.0f;

  // The only operand that the predecessor may have written.
  __device__ void read_residual(const StreamCall& call) {
    if (column >= 0) residual = __ldcg(call.residual + column);
  }
  // Combine: the weighted sum of the chosen experts' biases. Lane k holds the k-th routing weight.
  __device__ void combine_biases(const StreamCall& call, const StreamSmem& smem, float shares) {
    if (call.bias == nullptr) return;
    float sum = 0.0f;
    for (int k = 0; k < call.active; ++k) {
      const float share = __shfl_sync(full_warp, shares, k);
      if (k < max_biases) {
        sum += share * (k == 0 ? biases[0] : k == 1 ? biases[1] : k == 2 ? biases[2] : biases[3]);
      } else if (column >= 0) {
        sum += share * __ldg(call.bias + smem.chosen[k] * call.bias_stride + column);
      }
    }
    biases[0] = sum;
  }
};

// `first`: the batch's first pair.
template <StreamMode mode>
__device__ EpilogueOperands epilogue_operands(const StreamCall& call, const StreamSmem& smem,
                                              const StreamWork& work, int first, int thread) {
  EpilogueOperands out;
  constexpr int each = pair_gives_eight_rows(mode) ? 1 : 2;  // tiles of a pair whose rows are results
  const int tile = each * first + thread / tiles::tile_rows;
  if (thread >= each * tiles::tile_rows * stream_batch || tile >= work.tiles) return out;
  const TileIndex index = index_of<mode>(call, work.first + tile);
  const StreamPart& part = call.parts[index.part];
  const int row = index.row() + thread % tiles::tile_rows;
  if (row >= part.rows) return out;
  out.column = index.choice * part.rows + part.column + row;
  if constexpr (is_gated(mode)) {
    if (call.bias != nullptr) {
      const std::int64_t expert = mode == StreamMode::experts ? smem.chosen[index.choice] : 0;
      out.biases[0] = __ldg(call.bias + expert * call.bias_stride + row);
      out.biases[1] = __ldg(call.bias + expert * call.bias_stride + part.rows + row);
    }
  } else if (call.bias != nullptr && mode == StreamMode::combine) {
#pragma unroll
    for (int k = 0; k < EpilogueOperands::max_biases; ++k) {
      if (k < call.active) out.biases[k] = __ldg(call.bias + smem.chosen[k] * call.bias_stride + row);
    }
  } else if (call.bias != nullptr) {
    out.biases[0] = __ldg(call.bias + out.column);
  }
  if constexpr (is_adding(mode)) out.gain = __ldg(call.gain + out.column);
  return out;
}

__device__ inline float reduced_sum(const float* reduced, int row) {
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < stream_warps; ++warp) sum += reduced[warp * StreamSmem::warp_floats + row];
  return sum;
}

// Returns the square of the new residual element, for the next norm.
template <StreamMode mode>
__device__ float write_result(const StreamCall& call, const StreamSmem& smem, const float* reduced,
                              const EpilogueOperands& with, int first, int thread) {
  const float inverse = *smem.inverse;
  const int row = pair_gives_eight_rows(mode) ? thread / 8 * 16 + thread % 8 : thread;
  if constexpr (is_gated(mode)) {
    if (with.column < 0) return 0.0f;
    const float gate = reduced_sum(reduced, row) * inverse + with.biases[0];
    const float up = reduced_sum(reduced, row + 8) * inverse + with.biases[1];
    const float value = activated(gate, up, call.activation);
    if (mode == StreamMode::experts && call.routing.hidden_scale > 0.0f) {
      reinterpret_cast<__half*>(call.out.data)[with.column] =
          __float2half_rn(value * call.routing.hidden_scale);
    } else {
      call.out.put(with.column, value);
    }
    return 0.0f;
  } else if constexpr (mode == StreamMode::plain) {
    if (with.column >= 0) call.out.put(with.column, reduced_sum(reduced, row) * inverse + with.biases[0]);
    return 0.0f;
  } else {
    float scaled = 0.0f, value = 0.0f;
    if (with.column >= 0) {
      value = with.residual + call.scale * (reduced_sum(reduced, row) * inverse + with.biases[0]);
      scaled = value * with.gain;
      call.residual[with.column] = value;
      call.out.put(with.column, scaled);
    }
    const int own = 2 * tiles::tile_rows * first + thread;
    if (mode == StreamMode::add && thread < StreamSmem::batch_rows && own < stream_router_rows) {
      smem.scaled[own] = scaled;
    }
    return value * value;
  }
}

// A thread's part of the router columns that belong to this block's rows, loaded early and used late.
struct RouterSlice {
  static constexpr int max_columns = stream_router_columns;
  std::uint32_t words[max_columns] = {};
  float weights[max_columns] = {};

  // The first warp reduces the squares; the other threads have experts.
  __device__ static int expert_of(const StreamCall& call, int thread) {
    return thread < 32 ? call.router_experts : (thread - 32) >> call.router_shift;
  }
  __device__ void load(const StreamCall& call, const StreamWork& work, int thread) {
    const int lanes = 1 << call.router_shift, expert = expert_of(call, thread);
    const int width = call.parts[0].rows, first = tiles::tile_rows * work.first;
    const int rows = min(tiles::tile_rows * work.tiles, width - first);
    if (expert >= call.router_experts) return;
#pragma unroll
    for (int i = 0; i < max_columns; ++i) {
      const int at = (thread & (lanes - 1)) + i * lanes;
      if (at >= rows) break;
      const std::int64_t element = index(call, expert, first + at, width);
      words[i] = call.router.wide ? __ldg(reinterpret_cast<const std::uint32_t*>(call.router.data) + element)
                                  : __ldg(reinterpret_cast<const std::uint16_t*>(call.router.data) + element);
    }
  }
  // Called after the loads have had time to complete.
  __device__ void read(const StreamCall& call) {
    const int shift = call.router.wide ? 0 : 16;
#pragma unroll
    for (int i = 0; i < max_columns; ++i) weights[i] = __uint_as_float(words[i] << shift);
  }
  // Index of an element of the router.
  __device__ static std::int64_t index(const StreamCall& call, int expert, int column, int width) {
    if (call.router_tile == 0) return std::int64_t{expert} * width + column;
    const std::int64_t chunk = expert / tiles::tile_rows * call.router_tile + column / 64 * 1024;
    return (chunk + tiles::run_16_bit(expert % tiles::tile_rows, column / 8 % 8)) / 2 + column % 8;
  }
};

// After write_result and a barrier: this block's partial sum of squares and partial router logits. Missing
// rows are zeros.
template <StreamMode mode>
__device__ void write_partials(const StreamCall& call, const StreamSmem& smem, const RouterSlice& columns,
                               int thread) {
  if (thread < 32) {
    const float sum = warp_sum(thread < stream_warps ? smem.squares[thread] : 0.0f);
    if (thread == 0) call.squares[blockIdx.x] = sum;
    return;
  }
  if (mode != StreamMode::add || call.router_sums == nullptr) return;
  const int lanes = 1 << call.router_shift, expert = RouterSlice::expert_of(call, thread);
  const float* own = smem.scaled + (thread & (lanes - 1));
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < RouterSlice::max_columns; ++i) sum += own[i * lanes] * columns.weights[i];
  for (int offset = lanes / 2; offset > 0; offset >>= 1) sum += __shfl_xor_sync(full_warp, sum, offset);
  if (expert < call.router_experts && (thread & (lanes - 1)) == 0) {
    add_to_logit(call.router_sums + expert, sum);
  }
}

}  // namespace inferno::cuda
