// Routing: which experts each token asks for, the choices in order of their experts, and their weighted sum.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/choose.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

// A warp for each token.
__global__ void route_kernel(std::int32_t* experts, float* shares, const float* all_logits, int tokens,
                             int count, int active, bool renormalizes) {
  wait_for_previous();
  let_next_start();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t token = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  choose_experts(experts + token * active, shares + token * active,
                 {all_logits + token * count, count, active, renormalizes}, lane);
}

__device__ int sum_before(int value, int lane) {  // and including this lane's
  for (int offset = 1; offset < 32; offset <<= 1) {
    const int other = __shfl_up_sync(full_warp, value, offset);
    if (lane >= offset) value += other;
  }
  return value;
}

// By one warp, a lane for each expert: from counts to starts, and the tiles of all experts in order.
__device__ void list_tiles(const Sorted& sorted, std::int32_t* counts, int experts, int tile_size,
                           int tiles) {
  const int lane = static_cast<int>(threadIdx.x);
  int start = 0, tile = 0;
  for (int base = 0; base < experts; base += 32) {
    const int e = base + lane, count = e < experts ? counts[e] : 0;
    const int own_tiles = (count + tile_size - 1) / tile_size;
    const int counted = sum_before(count, lane), listed = sum_before(own_tiles, lane);
    const int own_start = start + counted - count, own_tile = tile + listed - own_tiles;
    if (e < experts) {
      sorted.counts[e] = count;
      sorted.starts[e] = own_start;
      counts[e] = own_start;
    }
    for (int i = 0; i < own_tiles; ++i) {
      sorted.tile_expert[own_tile + i] = e;
      sorted.tile_first[own_tile + i] = own_start + i * tile_size;
      sorted.tile_rows[own_tile + i] = min(tile_size, count - i * tile_size);
    }
    start += __shfl_sync(full_warp, counted, 31);
    tile += __shfl_sync(full_warp, listed, 31);
  }
  for (int i = tile + lane; i < tiles; i += 32) {
    sorted.tile_expert[i] = -1;
    sorted.tile_rows[i] = 0;
  }
}

// One block: count, place, list the tiles. Where a choice stands within its expert does not matter.
__global__ void __launch_bounds__(1024)
    sort_kernel(const Sorted sorted, const std::int32_t* chosen, int choices, int experts, int active,
                int tile_size, int tiles) {
  extern __shared__ std::int32_t next[];  // [experts]
  wait_for_previous();
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int e = thread; e < experts; e += threads) next[e] = 0;
  __syncthreads();
  for (int i = thread; i < choices; i += threads) atomicAdd(&next[__ldcg(chosen + i)], 1);
  __syncthreads();
  if (thread < 32) list_tiles(sorted, next, experts, tile_size, tiles);
  __syncthreads();
  for (int i = thread; i < choices; i += threads) {
    const int place = atomicAdd(&next[__ldcg(chosen + i)], 1);
    sorted.places[i] = place;
    sorted.tokens[place] = i / active;
  }
}

__global__ void combine_kernel(const Elements out, const Elements rows, const float* shares,
                               const std::int32_t* places, std::int64_t total, int cols, int active) {
  wait_for_previous();
  let_next_start();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step) {
    const std::int64_t token = i / cols;
    const int col = static_cast<int>(i % cols);
    float sum = 0.0f;
    for (int k = 0; k < active; ++k) {
      const std::int64_t choice = token * active + k;
      sum += shares[choice] * rows.get((places == nullptr ? choice : places[choice]) * cols + col);
    }
    out.put(i, sum);
  }
}

}  // namespace

void route(const Queue& queue, std::int32_t* experts, float* shares, Matrix logits, const MoeMlp& spec) {
  launch(queue, {.grid = dim3(blocks_for(logits.rows, 4)), .threads = 128}, route_kernel, experts, shares,
         floats_of(logits), logits.rows, spec.experts, spec.active, spec.renormalize);
}

void sort_choices(const Queue& queue, const Sorted& sorted, const Chosen& chosen, int experts, int tile) {
  launch(queue, {.threads = 1024, .shared = static_cast<std::size_t>(experts) * sizeof(std::int32_t)},
         sort_kernel, sorted, chosen.experts, chosen.choices, experts, chosen.active, tile,
         most_tiles(chosen.choices, experts, tile));
}

void combine(const Queue& queue, Matrix out, const MixedRows& mixed) {
  const std::int64_t total = std::int64_t{out.rows} * out.cols;
  const unsigned most = static_cast<unsigned>(queue.multiprocessors) * 16;
  launch(queue, {.grid = dim3(std::min(blocks_for(total, 256), most)), .threads = 256}, combine_kernel,
         elements_of(out), elements_of(mixed.rows), mixed.shares, mixed.places, total, out.cols,
         mixed.active);
}

}  // namespace inferno::cuda
