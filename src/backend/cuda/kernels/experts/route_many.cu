// Router logits and top-k choice for many tokens on tensor cores: sixteen tokens by all experts per block,
// whose eight warps split the columns (split-K). Bound by reading tokens and, mostly from L2, the router.
//
// The choice must be the one that float sums would make, except for near ties. So each factor is split into
// two bf16 (high and low, sixteen bits together): high * high + low * high + high * low. The dropped product
// of the low parts is below 2^-17; bf16 alone keeps 2^-9.
#include <cuda_fp16.h>

#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/experts/choose.cuh"
#include "backend/cuda/kernels/experts/experts.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int warps = 8, threads = 32 * warps;
constexpr int block_tokens = 16, run = 8, step_cols = 32;        // a lane has a run of each step
constexpr int batch_tiles = 4, batch_experts = 8 * batch_tiles;  // multiplied together
constexpr int max_batches = 2;                                   // accumulated by a warp at once
constexpr int sums_stride = batch_experts + 8;                   // padding against bank conflicts
static_assert(run == route_run && block_tokens * sizeof(float) == route_many_bytes(1));
static_assert(sizeof(float) * warps * block_tokens * sums_stride + route_many_max_bytes <= (46 << 10));

struct RouteManyCall {
  Elements in;  // [tokens, cols]
  const std::byte* router;
  std::int64_t router_bytes;  // per row, or per tile of eight rows
  const float* bias;
  std::int32_t* experts;
  float* shares;
  int tokens, cols, count, active;
  bool renormalizes;
};

using Sums = float[warps][block_tokens][sums_stride];

// Eight values, each the sum of two bf16.
struct Terms {
  std::uint32_t high[run / 2], low[run / 2];

  __device__ void set_pair(int i, float a, float b) {
    high[i] = pack_bf16x2(a, b);
    low[i] = pack_bf16x2(a - low_of(high[i]), b - high_of(high[i]));
  }
  __device__ void set_floats(const uint4& first, const uint4& second) {
    set_pair(0, __uint_as_float(first.x), __uint_as_float(first.y));
    set_pair(1, __uint_as_float(first.z), __uint_as_float(first.w));
    set_pair(2, __uint_as_float(second.x), __uint_as_float(second.y));
    set_pair(3, __uint_as_float(second.z), __uint_as_float(second.w));
  }
  __device__ void set_bf16(const uint4& words) {
    high[0] = words.x, high[1] = words.y, high[2] = words.z, high[3] = words.w;
#pragma unroll
    for (int i = 0; i < run / 2; ++i) low[i] = 0;
  }
};

// Addresses of a lane's runs of the router: row g of every tile of eight experts, column 8 t of every step.
template <WeightFormat Format>
struct RouterRows {
  static constexpr bool is_wide = Format == WeightFormat::f32;
  const std::byte* own;
  int tile_bytes;

  __device__ RouterRows(const RouteManyCall& call, int g, int t)
      : own(call.router + (is_wide ? g * call.router_bytes + 4 * run * t : tiles::run_16_bit(g, t))),
        tile_bytes(static_cast<int>(is_wide ? tiles::tile_rows * call.router_bytes : call.router_bytes)) {}
  __device__ const uint4* at(int tile, int step) const {
    return reinterpret_cast<const uint4*>(own + tile * tile_bytes + step * step_cols * (is_wide ? 4 : 16));
  }
};

// One run: the loaded words, and their split into high and low terms.
template <WeightFormat Format>
struct RouterRun {
  static constexpr bool is_wide = Format == WeightFormat::f32, has_low = Format != WeightFormat::bf16;
  uint4 words[is_wide ? 2 : 1];

  __device__ void load(const uint4* from, bool is_there) {
#pragma unroll
    for (uint4& word : words) word = is_there ? __ldg(from++) : make_uint4(0, 0, 0, 0);
  }
  __device__ Terms terms() const {
    Terms out;
    if constexpr (is_wide) {
      out.set_floats(words[0], words[1]);
    } else if constexpr (Format == WeightFormat::bf16) {
      out.set_bf16(words[0]);
    } else {
      const std::uint32_t pairs[] = {words[0].x, words[0].y, words[0].z, words[0].w};
#pragma unroll
      for (int i = 0; i < run / 2; ++i) {
        const float2 pair = __half22float2(*reinterpret_cast<const __half2*>(&pairs[i]));
        out.set_pair(i, pair.x, pair.y);
      }
    }
    return out;
  }
};

// The runs of a lane's two tokens, g and g + 8; zeros past the last column.
struct TokenRuns {
  uint4 words[2][2];

  __device__ void load(const Elements& in, const std::int64_t (&rows)[2], int column, int cols) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      words[i][0] = words[i][1] = make_uint4(0, 0, 0, 0);
      if (column >= cols) continue;
      const auto* from = reinterpret_cast<const uint4*>(in.data + (rows[i] + column) * (in.wide ? 4 : 2));
      words[i][0] = from[0];
      if (in.wide) words[i][1] = from[1];
    }
  }
  __device__ void split(Terms (&out)[2], bool wide) const {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      if (wide) {
        out[i].set_floats(words[i][0], words[i][1]);
      } else {
        out[i].set_bf16(words[i][0]);
      }
    }
  }
};

// c += a * b over 32 columns. The order of columns is free as long as both operands agree: a lane's run
// serves as columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9 of two products.
__device__ void add_products(float (&c)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[4],
                             const std::uint32_t (&weights)[4]) {
  mma_bf16(c, a[0], b[0], a[1], b[1], weights[0], weights[1]);
  mma_bf16(c, a[2], b[2], a[3], b[3], weights[2], weights[3]);
}

// A warp's part of the logits: every eighth step of the columns, 32 experts per batch. Tokens of two steps
// and weights of two batches are in flight or in use.
template <WeightFormat Format, int Batches>
struct LogitAccumulator {
  const RouteManyCall& call;
  const RouterRows<Format> router;
  const int first_tile, warp, lane;
  RouterRun<Format> weights[2][batch_tiles];
  TokenRuns tokens[2];
  float sums[Batches][batch_tiles][4] = {};

  // Turn 0 is the first batch of `step`, which may be past the last step.
  __device__ void load_weights(int step, int turn) {
    step += turn / Batches * warps;
    const bool has_columns = step_cols * step + run * (lane % 4) < call.cols;
#pragma unroll
    for (int i = 0; i < batch_tiles; ++i) {
      const int tile = first_tile + turn % Batches * batch_tiles + i;
      weights[turn % 2][i].load(router.at(tile, step), has_columns && 8 * tile + lane / 4 < call.count);
    }
  }
  __device__ void load_tokens(int step, const std::int64_t (&rows)[2], int half) {
    tokens[half].load(call.in, rows, step_cols * step + run * (lane % 4), call.cols);
  }

  __device__ void multiply(const RouterRun<Format> (&batch)[batch_tiles], const Terms (&pair)[2],
                           float (&to)[batch_tiles][4]) {
#pragma unroll
    for (int i = 0; i < batch_tiles; ++i) {
      const Terms weight = batch[i].terms();
      add_products(to[i], pair[0].low, pair[1].low, weight.high);
      if constexpr (RouterRun<Format>::has_low) add_products(to[i], pair[0].high, pair[1].high, weight.low);
      add_products(to[i], pair[0].high, pair[1].high, weight.high);
    }
  }

  // Before the wait: weights do not depend on other kernels.
  __device__ void begin() {
    load_weights(warp, 0);
    load_weights(warp, 1);
  }
  __device__ void finish(const std::int64_t (&rows)[2]) {
    load_tokens(warp, rows, 0);
    load_tokens(warp + warps, rows, 1);
    for (int step = warp; step * step_cols < call.cols; step += 2 * warps) {
      Terms pair[2];
#pragma unroll
      for (int turn = 0; turn < 2 * Batches; ++turn) {
        const int half = turn / Batches;
        if (turn % Batches == 0) {
          tokens[half].split(pair, call.in.wide);
          load_tokens(step + (half + 2) * warps, rows, half);
        }
        multiply(weights[turn % 2], pair, sums[turn % Batches]);
        load_weights(step, turn + 2);
      }
    }
  }
};

// Reduces the warps' sums of a batch, in order.
__device__ void reduce_sums(const RouteManyCall& call, Sums& smem, float* logits,
                            const float (&sums)[batch_tiles][4], int first) {
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  __syncthreads();  // the sums of the previous batch have been read
#pragma unroll
  for (int i = 0; i < batch_tiles; ++i) {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      float* to = &smem[warp][lane / 4 + 8 * half][8 * i + 2 * (lane % 4)];
      *reinterpret_cast<float2*>(to) = make_float2(sums[i][2 * half], sums[i][2 * half + 1]);
    }
  }
  __syncthreads();
  for (int i = thread; i < block_tokens * batch_experts; i += threads) {
    const int token = i / batch_experts, place = i % batch_experts, expert = first + place;
    if (expert >= call.count) continue;
    float sum = call.bias == nullptr ? 0.0f : __ldg(call.bias + expert);
#pragma unroll
    for (int from = 0; from < warps; ++from) sum += smem[from][token][place];
    logits[token * call.count + expert] = sum;
  }
}

template <WeightFormat Format, int Batches>
__global__ void __launch_bounds__(threads) route_many_kernel(const __grid_constant__ RouteManyCall call) {
  extern __shared__ __align__(16) float logits[];  // [block_tokens, count]
  __shared__ __align__(16) Sums smem;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int first_token = static_cast<int>(blockIdx.x) * block_tokens;
  std::int64_t rows[2];  // tokens past the last are copies of it, never written
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    rows[i] = std::int64_t{min(first_token + lane / 4 + 8 * i, call.tokens - 1)} * call.cols;
  }
  for (int first = 0; first < call.count; first += Batches * batch_experts) {
    LogitAccumulator<Format, Batches> accumulator = {call, {call, lane / 4, lane % 4}, first / 8, warp, lane};
    accumulator.begin();
    if (first == 0) {
      wait_for_previous();
      let_next_start();
    }
    accumulator.finish(rows);
#pragma unroll
    for (int batch = 0; batch < Batches; ++batch) {
      reduce_sums(call, smem, logits, accumulator.sums[batch], first + batch * batch_experts);
    }
  }
  __syncthreads();
  for (int token = warp; token < block_tokens && first_token + token < call.tokens; token += warps) {
    const std::int64_t choices = std::int64_t{first_token + token} * call.active;
    choose_experts(call.experts + choices, call.shares + choices,
                   {logits + token * call.count, call.count, call.active, call.renormalizes}, lane);
  }
}

template <WeightFormat Format>
void start(const Queue& queue, const RouteManyCall& call) {
  const Shape shape = {.grid = dim3(blocks_for(call.tokens, block_tokens)),
                       .threads = threads,
                       .shared = static_cast<std::size_t>(route_many_bytes(call.count))};
  if (call.count <= batch_experts) return launch(queue, shape, route_many_kernel<Format, 1>, call);
  launch(queue, shape, route_many_kernel<Format, max_batches>, call);
}

}  // namespace

void route_many(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec) {
  const RouteManyCall call = {
      .in = elements_of(rows.in),
      .router = router.data,
      .router_bytes = router.layout == Layout::tiled ? router.tile_bytes : router.row_bytes,
      .bias = rows.bias,
      .experts = rows.experts,
      .shares = rows.shares,
      .tokens = rows.in.rows,
      .cols = rows.in.cols,
      .count = spec.experts,
      .active = spec.active,
      .renormalizes = spec.renormalize};
  if (router.format == WeightFormat::f32) return start<WeightFormat::f32>(queue, call);
  if (router.format == WeightFormat::f16) return start<WeightFormat::f16>(queue, call);
  start<WeightFormat::bf16>(queue, call);
}

}  // namespace inferno::cuda
