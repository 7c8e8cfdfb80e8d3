// Products with one to eight tokens, bound by weight bandwidth: each weight is read once, 16 bytes per lane,
// in storage order, several loads ahead of its use. Layouts: docs/kernels.md.
//
// A tile is eight weight rows, or two times eight. `split` warps of a block split the columns of one tile
// (split-K), so that every SM has work however few rows there are; with many rows each warp has a tile. The
// tensor cores do the sums (weights are the operand of eight columns, tokens the one of sixteen rows), so
// that eight tokens cost what one does. The order of columns is free as long as weights and activations
// agree, so each lane takes runs of eight neighboring columns.
//
// A Codec defines what a lane reads in one step: `runs` runs, together `step` columns over the four lanes of
// a row, and how many steps it may load `ahead` before registers run out. It reads from the start of its row
// or, if it `has_tiles`, from the start of the tile (tiles.cuh). A codec with `block_runs` decodes codes; the
// sums of so many runs are multiplied by a scale.
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {

enum class GemvMode { plain, gated, combined };

struct GemvPart {
  const std::byte* data = nullptr;
  int rows = 0, column = 0, first_tile = 0;
};

struct GemvCall {
  GemvPart parts[gemv_max_parts];
  int part_count = 1;
  std::int64_t stride = 0, expert_bytes = 0;  // stride: bytes per row, or per tile
  int cols = 0;
  const std::byte* in = nullptr;
  int tokens = 1, in_divisor = 1;
  bool in_is_wide = false;  // float, rounded to bf16 when staged
  int group = 1;            // tokens per block, unless there are experts
  int split = 1;            // warps per tile: 1, 2, 4 or 8
  int tiles = 0;
  Elements out;
  int out_cols = 0;
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const std::int32_t* experts = nullptr;
  const float* shares = nullptr;
  int active = 1;
  ActivationSpec activation;
  const std::int32_t* column_order = nullptr;  // WeightView::column_order
};

constexpr int gemv_warps = 8;
constexpr int gemv_usual_shared = 40 << 10;  // below the limit that needs cudaFuncSetAttribute
constexpr int gemv_group_shared = 68 << 10;  // activations that allow three resident blocks

__device__ inline uint4 load_once(const void* from) {
  uint4 out;
  asm("ld.global.nc.L1::no_allocate.L2::256B.v4.u32 {%0,%1,%2,%3}, [%4];"
      : "=r"(out.x), "=r"(out.y), "=r"(out.z), "=r"(out.w)
      : "l"(from));
  return out;
}

// Eight elements of a row, in the order of the weight's columns.
__device__ inline uint4 gather_run(const GemvCall& call, std::int64_t row, const std::int32_t* columns) {
  const Elements in = {const_cast<std::byte*>(call.in), call.in_is_wide};
  float values[8];
#pragma unroll
  for (int i = 0; i < 8; ++i) values[i] = in.get(row * call.cols + __ldg(columns + i));
  return make_uint4(pack_bf16x2(values[0], values[1]), pack_bf16x2(values[2], values[3]),
                    pack_bf16x2(values[4], values[5]), pack_bf16x2(values[6], values[7]));
}

// Stages `count` rows of activations from `first` on in shared memory, as bf16. expert_of(row): whose columns
// the row is multiplied with.
template <class ExpertOf>
__device__ void stage(std::byte* to, const GemvCall& call, std::int64_t first, int count,
                      const ExpertOf& expert_of) {
  const int chunks = call.cols / 8;
  for (int i = static_cast<int>(threadIdx.x); i < count * chunks; i += 32 * gemv_warps) {
    const int row = i / chunks, chunk = i % chunks;
    const std::int64_t at = (first + row) * call.cols + 8 * chunk;
    uint4 words;
    if (call.column_order != nullptr) {
      const std::int32_t* columns = call.column_order + expert_of(row) * call.cols + 8 * chunk;
      words = gather_run(call, first + row, columns);
    } else if (call.in_is_wide) {
      const auto* from = reinterpret_cast<const float4*>(call.in + at * 4);
      const float4 a = from[0], b = from[1];
      words = make_uint4(pack_bf16x2(a.x, a.y), pack_bf16x2(a.z, a.w), pack_bf16x2(b.x, b.y),
                         pack_bf16x2(b.z, b.w));
    } else {
      words = *reinterpret_cast<const uint4*>(call.in + at * 2);
    }
    *reinterpret_cast<uint4*>(to + row * gemv_staged_bytes(call.cols) + 16 * chunk) = words;
  }
  __syncthreads();
}

// What a lane reads: columns from `base` on, its row in the tile and its part of the row.
struct LanePosition {
  int cols, base, group, part;
};

// The columns and the expert of a warp's step number `it`. Only combined products have several experts.
struct Step {
  int choice, base;
};

template <class Codec, GemvMode mode>
__device__ Step step_of(const GemvCall& call, int it) {
  const int steps = (call.cols + Codec::step - 1) / Codec::step;
  if constexpr (mode != GemvMode::combined) return {0, it * Codec::step};
  return {it / steps, it % steps * Codec::step};
}

// The work of one lane.
template <class Codec, int Tiles, GemvMode mode>
struct GemvLane {
  static constexpr int ahead = Codec::ahead / Tiles;  // twice as many loads are in flight
  using Fragments = typename Codec::Fragment[ahead][Tiles];

  const GemvCall& call;
  const std::byte* from[Tiles];  // the lane's row of each tile, or the tile
  const std::int32_t* experts;   // of this token, in shared memory
  const float* shares;
  const std::byte* in;                   // staged activations
  int warp, group, part, total, tokens;  // warp: index among those that share the tile
  float sums[Tiles][4] = {};

  __device__ void fetch(Fragments& fragments, int first) const {
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const int it = first + u * call.split;
      const Step at = step_of<Codec, mode>(call, it);
      const bool wanted = it < total && at.base + Codec::element(part, 0) < call.cols;
      std::int64_t offset = 0;
      if constexpr (mode == GemvMode::combined) {
        if (wanted) offset = experts[at.choice] * call.expert_bytes;
      }
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        fragments[u][tile] =
            wanted ? Codec::load(from[tile] + offset, LanePosition{call.cols, at.base, group, part})
                   : typename Codec::Fragment{};
      }
    }
  }

  // Steps past the last multiply zeros: cheaper than a branch that keeps loads from being hoisted.
  __device__ void consume(const Fragments& fragments, int first) {
#pragma unroll
    for (int u = 0; u < ahead; ++u) {
      const int it = first + u * call.split;
      const Step at = step_of<Codec, mode>(call, it);
      if constexpr (mode == GemvMode::combined) {
        float fresh[Tiles][4] = {};
        add_step(fragments[u], at, it < total, fresh);
        const float share = it < total ? shares[at.choice] : 0.0f;
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
          sums[tile][0] += share * fresh[tile][0];
          sums[tile][1] += share * fresh[tile][1];
        }
      } else {
        add_step(fragments[u], at, it < total, sums);
      }
    }
  }

  __device__ void add_step(const typename Codec::Fragment (&fragments)[Tiles], const Step& at, bool wanted,
                           float (&to)[Tiles][4]) const {
    if constexpr (requires { Codec::block_runs; }) {
#pragma unroll
      for (int block = 0; block < Codec::blocks; ++block) {
        float fresh[Tiles][4] = {};
        add_runs<Codec::block_runs>(fragments, block * Codec::block_runs, at, wanted, fresh);
#pragma unroll
        for (int tile = 0; tile < Tiles; ++tile) {
          const float2 scales = Codec::scales(fragments[tile], block);
          to[tile][0] += scales.x * fresh[tile][0];
          to[tile][1] += scales.y * fresh[tile][1];
        }
      }
    } else {
      add_runs<Codec::runs>(fragments, 0, at, wanted, to);
    }
  }

  template <int Count>
  __device__ void add_runs(const typename Codec::Fragment (&fragments)[Tiles], int first, const Step& at,
                           bool wanted, float (&to)[Tiles][4]) const {
    const std::byte* token = in + (at.choice + group) * gemv_staged_bytes(call.cols);
#pragma unroll
    for (int i = 0; i < Count; ++i) {
      const int run = first + i;
      const int k = at.base + Codec::element(part, run);
      uint4 a = make_uint4(0, 0, 0, 0);
      if (wanted && group < tokens && k < call.cols) a = *reinterpret_cast<const uint4*>(token + 2 * k);
#pragma unroll
      for (int tile = 0; tile < Tiles; ++tile) {
        std::uint32_t w[4];
        Codec::decode(w, fragments[tile], at.base, part, run);
        mma_bf16(to[tile], a.x, 0, a.y, 0, w[0], w[1]);
        mma_bf16(to[tile], a.z, 0, a.w, 0, w[2], w[3]);
      }
    }
  }

  __device__ void run(Fragments& current) {
    Fragments next;
    const int stride = ahead * call.split;
    for (int first = warp; first < total; first += 2 * stride) {
      fetch(next, first + stride);
      consume(current, first);
      fetch(current, first + 2 * stride);
      consume(next, first + stride);
    }
  }
};

struct GemvTarget {
  int part = 0, row = 0;  // the part, and the tile's first row in it
  std::int64_t expert = 0;
};

// Reduces the sums of the warps that share a tile, in order. `smem` points to those of the first warp.
__device__ inline float gather(const float* smem, int row, int token, int tile_rows, int split) {
  float sum = 0.0f;
  for (int warp = 0; warp < split; ++warp) {
    sum += smem[(warp * tile_rows + row) * gemv_max_tokens + token];
  }
  return sum;
}

// Rows that one tile writes. Gated: a gate row and an up row give one element.
template <int Tiles, GemvMode mode>
constexpr int rows_written = mode == GemvMode::gated ? 8 : 8 * Tiles;

template <GemvMode mode>
__device__ GemvTarget target_of(const GemvCall& call, int tile, int rows) {
  GemvTarget target;
  while (mode == GemvMode::plain && target.part + 1 < call.part_count &&
         tile >= call.parts[target.part + 1].first_tile) {
    ++target.part;
  }
  target.row = (tile - call.parts[target.part].first_tile) * rows;
  return target;
}

// Epilogue of one row of one tile for one token.
template <int Tiles, GemvMode mode>
__device__ void finish(const GemvCall& call, const float* smem, const GemvTarget& target, int i, int token,
                       const std::int32_t* experts, const float* shares) {
  constexpr int tile_rows = 8 * Tiles;
  const GemvPart& part = call.parts[target.part];
  const int row = target.row + i;
  if (row >= part.rows) return;
  const std::int64_t first = std::int64_t{blockIdx.y} * (call.experts == nullptr ? call.group : 1);
  float value = gather(smem, i, token, tile_rows, call.split);
  const std::int64_t column = part.column + row;
  if constexpr (mode == GemvMode::gated) {
    float up = gather(smem, i + 8, token, tile_rows, call.split);
    if (call.bias != nullptr) {
      value += call.bias[target.expert * call.bias_stride + row];
      up += call.bias[target.expert * call.bias_stride + part.rows + row];
    }
    value = activated(value, up, call.activation);
  } else if constexpr (mode == GemvMode::combined) {
    for (int k = 0; call.bias != nullptr && k < call.active; ++k) {
      value += shares[k] * call.bias[experts[k] * call.bias_stride + column];
    }
  } else if (call.bias != nullptr) {
    value += call.bias[column];
  }
  call.out.put((first + token) * call.out_cols + column, value);
}

// Rows and tiles past the last read the last one.
template <class Codec, GemvMode mode, int Tiles>
__device__ void set_start(const std::byte* (&from)[Tiles], const GemvCall& call, const GemvTarget& target,
                          int group) {
  constexpr bool gated = mode == GemvMode::gated;
#pragma unroll
  for (int tile = 0; tile < Tiles; ++tile) {
    const GemvPart& part = call.parts[gated ? tile : target.part];
    const int row = min(target.row + (gated ? 0 : 8 * tile) + (Codec::has_tiles ? 0 : group), part.rows - 1);
    const std::int64_t place = Codec::has_tiles ? row / 8 : row;
    from[tile] = part.data + target.expert * call.expert_bytes + place * call.stride;
  }
}

template <class Codec, int Tiles, GemvMode mode>
__global__ void __launch_bounds__(32 * gemv_warps, 2) gemv_kernel(const __grid_constant__ GemvCall call) {
  extern __shared__ __align__(16) std::byte staged[];
  __shared__ float smem[gemv_warps * 8 * Tiles * gemv_max_tokens];
  __shared__ std::int32_t experts[gemv_max_active];
  __shared__ float shares[gemv_max_active];
  using Lane = GemvLane<Codec, Tiles, mode>;
  constexpr int rows = rows_written<Tiles, mode>;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int block_tiles = gemv_warps / call.split;
  const int first_tile = static_cast<int>(blockIdx.x) * block_tiles;
  const int tile = min(first_tile + warp / call.split, call.tiles - 1);
  GemvTarget target = target_of<mode>(call, tile, rows);
  const int steps = (call.cols + Codec::step - 1) / Codec::step;
  const bool chosen = call.experts != nullptr;
  const int first = static_cast<int>(blockIdx.y) * (chosen ? 1 : call.group);
  const std::int64_t in_row =
      mode == GemvMode::combined ? std::int64_t{first} * call.active : first / call.in_divisor;
  Lane work = {.call = call,
               .from = {},
               .experts = experts,
               .shares = shares,
               .in = staged,
               .warp = warp % call.split,
               .group = lane / 4,
               .part = lane % 4,
               .total = mode == GemvMode::combined ? steps * call.active : steps,
               .tokens = chosen ? 1 : min(call.tokens - first, call.group)};
  typename Lane::Fragments fragments;
  if (!chosen) {  // weights do not depend on the predecessor
    set_start<Codec, mode>(work.from, call, target, work.group);
    work.fetch(fragments, work.warp);
  }
  wait_for_previous();
  let_next_start();
  if constexpr (mode == GemvMode::combined) {
    if (static_cast<int>(threadIdx.x) < call.active) {
      experts[threadIdx.x] = call.experts[in_row + threadIdx.x];
      shares[threadIdx.x] = call.shares[in_row + threadIdx.x];
    }
    __syncthreads();
  }
  if (chosen) {
    if constexpr (mode == GemvMode::gated) target.expert = call.experts[blockIdx.y];
    set_start<Codec, mode>(work.from, call, target, work.group);
    work.fetch(fragments, work.warp);
  }
  stage(staged, call, in_row, mode == GemvMode::combined ? call.active : work.tokens,
        [&](int row) -> std::int64_t { return mode == GemvMode::combined ? experts[row] : target.expert; });
  work.run(fragments);
  if (work.group < work.tokens) {
#pragma unroll
    for (int tile = 0; tile < Tiles; ++tile) {
      float* to = smem + (warp * 8 * Tiles + 8 * tile + 2 * work.part) * gemv_max_tokens + work.group;
      to[0] = work.sums[tile][0];
      to[gemv_max_tokens] = work.sums[tile][1];
    }
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < block_tiles * rows * work.tokens; i += 32 * gemv_warps) {
    const int own = i / (rows * work.tokens), rest = i % (rows * work.tokens);
    if (first_tile + own >= call.tiles) break;
    GemvTarget to = target_of<mode>(call, first_tile + own, rows);
    to.expert = target.expert;
    const float* sums = smem + own * call.split * 8 * Tiles * gemv_max_tokens;
    finish<Tiles, mode>(call, sums, to, rest % rows, rest / rows, experts, shares);
  }
}

// As many warps per tile as it takes to give every SM eight, but not so many that a warp has fewer steps than
// it loads ahead.
inline int split_for(const Queue& queue, std::int64_t tiles, int steps) {
  int split = 1;
  while (split < gemv_warps && tiles * split < 8 * queue.multiprocessors && steps / (2 * split) >= 4)
    split *= 2;
  return split;
}

template <class Kernel>
void start_kernel(const Queue& queue, Kernel* kernel, GemvCall& call, int count, int staged, int steps) {
  const int groups = call.experts != nullptr ? count : (count + call.group - 1) / call.group;
  const int bytes = staged * gemv_staged_bytes(call.cols);
  call.split = split_for(queue, std::int64_t{call.tiles} * groups, steps);
  if (bytes > gemv_usual_shared) {
    // The largest size that any shape needs, because recorded graphs contain several shapes.
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               std::max(bytes, gemv_max_shared)));
  }
  launch(queue,
         {.grid = dim3(blocks_for(call.tiles, gemv_warps / call.split), static_cast<unsigned>(groups)),
          .threads = 32 * gemv_warps,
          .shared = static_cast<std::size_t>(bytes)},
         kernel, call);
}

// Two tiles per warp if there are enough rows to keep the device busy: activations are then read half as
// often.
template <class Codec>
void launch_gemv(const Queue& queue, GemvCall call, GemvMode mode, int count) {
  const auto set_tiles = [&](int rows_each) {
    call.tiles = 0;
    for (int i = 0; i < call.part_count; ++i) {
      call.parts[i].first_tile = call.tiles;
      call.tiles += (call.parts[i].rows + rows_each - 1) / rows_each;
    }
    return call.tiles;
  };
  const int steps = (call.cols + Codec::step - 1) / Codec::step;
  call.group =
      std::clamp(gemv_group_shared / gemv_staged_bytes(call.cols), 1, std::min(count, gemv_max_tokens));
  const int staged = call.experts != nullptr ? 1 : call.group;
  set_tiles(8);
  if (mode == GemvMode::gated) {
    return start_kernel(queue, gemv_kernel<Codec, 2, GemvMode::gated>, call, count, staged, steps);
  }
  if (mode == GemvMode::combined) {
    return start_kernel(queue, gemv_kernel<Codec, 1, GemvMode::combined>, call, count, call.active,
                        steps * call.active);
  }
  if (call.tiles >= 32 * queue.multiprocessors) {
    set_tiles(16);
    return start_kernel(queue, gemv_kernel<Codec, 2, GemvMode::plain>, call, count, staged, steps);
  }
  start_kernel(queue, gemv_kernel<Codec, 1, GemvMode::plain>, call, count, staged, steps);
}

}  // namespace inferno::cuda
