// Routing: top-k experts per token, choices sorted by expert, and the weighted sum of their results.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/experts/choose.cuh"
#include "backend/cuda/kernels/experts/experts.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

// A warp per token.
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

__device__ int sum_before(int value, int lane) {  // inclusive
  for (int offset = 1; offset < 32; offset <<= 1) {
    const int other = __shfl_up_sync(full_warp, value, offset);
    if (lane >= offset) value += other;
  }
  return value;
}

// One warp, a lane per expert: exclusive prefix sum of counts.
__device__ void find_starts(const Sorted& sorted, std::int32_t* starts, const std::int32_t* counts,
                            int experts) {
  const int lane = static_cast<int>(threadIdx.x);
  int start = 0;
  for (int base = 0; base < experts; base += 32) {
    const int e = base + lane, count = e < experts ? counts[e] : 0;
    const int counted = sum_before(count, lane);
    if (e < experts) {
      sorted.counts[e] = count;
      sorted.starts[e] = starts[e] = start + counted - count;
    }
    start += __shfl_sync(full_warp, counted, 31);
  }
}

// The same warp after find_starts(): the tiles of all experts in order or, if by_size, those more than three
// quarters full first, then those more than half full, and so on.
__device__ void list_tiles(const Sorted& sorted, const std::int32_t* starts, const std::int32_t* counts,
                           int experts, const TileOrder& order, int tiles) {
  const int lane = static_cast<int>(threadIdx.x);
  int tile = 0;
  for (int size = order.by_size ? 4 : 1; size > 0; --size) {
    for (int base = 0; base < experts; base += 32) {
      const int e = base + lane, count = e < experts ? counts[e] : 0;
      const int all = (count + order.rows - 1) / order.rows;
      int first = 0, end = all;
      if (order.by_size && all > 0) {
        const int rest = count - (all - 1) * order.rows, rest_size = (4 * rest + order.rows - 1) / order.rows;
        first = size == 4 ? 0 : all - 1;
        end = rest_size == size ? all : all - 1;
      }
      const int own = max(0, end - first), listed = sum_before(own, lane);
      int at = tile + listed - own;
      for (int i = first; i < end; ++i, ++at) {
        sorted.tile_expert[at] = e;
        sorted.tile_first[at] = starts[e] + i * order.rows;
        sorted.tile_rows[at] = min(order.rows, count - i * order.rows);
      }
      tile += __shfl_sync(full_warp, listed, 31);
    }
  }
  for (int i = tile + lane; i < tiles; i += 32) {
    sorted.tile_expert[i] = -1;
    sorted.tile_rows[i] = 0;
  }
}

// One block: count, place, list the tiles. The order of choices within an expert does not matter.
__global__ void __launch_bounds__(1024)
    sort_kernel(const Sorted sorted, const std::int32_t* chosen, int choices, int experts, int active,
                const TileOrder order, int tiles) {
  extern __shared__ std::int32_t counts[];  // [experts], then [experts] next free places
  std::int32_t* next = counts + experts;
  wait_for_previous();
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int e = thread; e < experts; e += threads) counts[e] = 0;
  __syncthreads();
  for (int i = thread; i < choices; i += threads) atomicAdd(&counts[__ldcg(chosen + i)], 1);
  __syncthreads();
  if (thread < 32) {
    find_starts(sorted, next, counts, experts);
    list_tiles(sorted, next, counts, experts, order, tiles);
  }
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

void sort_choices(const Queue& queue, const Sorted& sorted, const Chosen& chosen, int experts,
                  const TileOrder& order) {
  launch(queue, {.threads = 1024, .shared = 2 * static_cast<std::size_t>(experts) * sizeof(std::int32_t)},
         sort_kernel, sorted, chosen.experts, chosen.choices, experts, chosen.active, order,
         max_tiles(chosen.choices, experts, order.rows));
}

void combine(const Queue& queue, Matrix out, const MixedRows& mixed) {
  const std::int64_t total = std::int64_t{out.rows} * out.cols;
  const unsigned max_blocks = static_cast<unsigned>(queue.multiprocessors) * 16;
  launch(queue, {.grid = dim3(std::min(blocks_for(total, 256), max_blocks)), .threads = 256}, combine_kernel,
         elements_of(out), elements_of(mixed.rows), mixed.shares, mixed.places, total, out.cols,
         mixed.active);
}

}  // namespace inferno::cuda
