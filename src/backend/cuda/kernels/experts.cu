// Routing: which experts each token asks for, the choices in order of their experts, and their weighted sum.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct Best {
  float logit;
  int expert;
};

__device__ bool comes_first(const Best& a, const Best& b) {
  return a.logit > b.logit || (a.logit == b.logit && a.expert < b.expert);
}

// The first expert behind `last` in the order of logits, then numbers: no list of those taken is needed.
__device__ Best next_best(const float* logits, int experts, const Best& last, int lane) {
  Best best = {-INFINITY, experts};
  for (int e = lane; e < experts; e += 32) {
    const Best candidate = {logits[e], e};
    if (comes_first(last, candidate) && comes_first(candidate, best)) best = candidate;
  }
  for (int offset = 16; offset > 0; offset >>= 1) {
    const Best other = {__shfl_xor_sync(full_warp, best.logit, offset),
                        __shfl_xor_sync(full_warp, best.expert, offset)};
    if (comes_first(other, best)) best = other;
  }
  return best;
}

// A warp for each token.
__global__ void route_kernel(std::int32_t* experts, float* shares, const float* all_logits, int tokens,
                             int count, int active, bool renormalizes) {
  wait_for_previous();
  let_next_start();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t token = std::int64_t{blockIdx.x} * (blockDim.x / 32) + threadIdx.x / 32;
  if (token >= tokens) return;
  const float* logits = all_logits + token * count;
  Best last = {INFINITY, -1};
  float top = 0.0f, sum = 0.0f;
  for (int k = 0; k < active; ++k) {
    last = next_best(logits, count, last, lane);
    if (k == 0) top = last.logit;
    const float share = expf(last.logit - top);
    sum += share;
    if (lane == 0) {
      // Logits that are not numbers choose nobody; an expert that exists keeps the kernels behind safe.
      experts[token * active + k] = min(last.expert, count - 1);
      shares[token * active + k] = share;
    }
  }
  if (!renormalizes) {
    sum = 0.0f;
    for (int e = lane; e < count; e += 32) sum += expf(logits[e] - top);
    sum = warp_sum(sum);
  }
  __syncwarp();
  for (int k = lane; k < active; k += 32) shares[token * active + k] /= sum;
}

// One block: count, place, list the tiles. Where a choice stands within its expert does not matter.
__global__ void __launch_bounds__(1024) sort_kernel(const Sorted sorted, const std::int32_t* chosen,
                                                    int choices, int experts, int active, int tiles) {
  extern __shared__ std::int32_t next[];  // [experts]
  wait_for_previous();
  let_next_start();
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  for (int e = thread; e < experts; e += threads) next[e] = 0;
  __syncthreads();
  for (int i = thread; i < choices; i += threads) atomicAdd(&next[chosen[i]], 1);
  __syncthreads();
  if (thread == 0) {
    int start = 0, tile = 0;
    for (int e = 0; e < experts; ++e) {
      const int count = next[e];
      sorted.counts[e] = count;
      sorted.starts[e] = start;
      next[e] = start;
      for (int first = 0; first < count; first += gemm_rows, ++tile) {
        sorted.tile_expert[tile] = e;
        sorted.tile_first[tile] = start + first;
      }
      start += count;
    }
    for (; tile < tiles; ++tile) sorted.tile_expert[tile] = -1;
  }
  __syncthreads();
  for (int i = thread; i < choices; i += threads) {
    const int place = atomicAdd(&next[chosen[i]], 1);
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

void sort_choices(const Queue& queue, const Sorted& sorted, const std::int32_t* experts, std::int32_t choices,
                  const MoeMlp& spec) {
  launch(queue, {.threads = 1024, .shared = static_cast<std::size_t>(spec.experts) * sizeof(std::int32_t)},
         sort_kernel, sorted, experts, choices, spec.experts, spec.active, gemm_tiles(choices, spec.experts));
}

void combine(const Queue& queue, Matrix out, Matrix rows, const float* shares, const std::int32_t* places,
             int active) {
  const std::int64_t total = std::int64_t{out.rows} * out.cols;
  const unsigned most = static_cast<unsigned>(queue.multiprocessors) * 16;
  launch(queue, {.grid = dim3(std::min(blocks_for(total, 256), most)), .threads = 256}, combine_kernel,
         elements_of(out), elements_of(rows), shares, places, total, out.cols, active);
}

}  // namespace inferno::cuda
