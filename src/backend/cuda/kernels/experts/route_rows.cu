// Router, top-k choice and conversion of the rows to 16 bits in one kernel, for a few rows that experts
// multiply next. Bound by latency, so a cluster of blocks shares the experts of a token: each block holds the
// whole row in registers, a quarter in every fourth warp, and loads its first weights before the predecessor
// ends.
#include <cuda_fp16.h>

#include "backend/cuda/device/cluster.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/f16.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/experts/choose.cuh"
#include "backend/cuda/kernels/experts/experts.h"
#include "backend/cuda/kernels/for_layout.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int threads = 512, warps = threads / 32;
constexpr int quarters = 4, experts_at_once = warps / quarters;  // of a block
constexpr int run = 8, kept_runs = 4;                            // elements of a run; runs kept by each lane
constexpr int max_cluster_blocks = 8;
static_assert(run == route_run && (quarters + 1) * sizeof(float) == route_rows_bytes(1));

struct RouteCall {
  Elements in;
  std::byte* narrow;  // may be null
  float* factors;     // null: narrow is bf16, otherwise f16 times these
  const float* bias;
  std::int32_t* experts;
  float* shares;
  int cols, count, active;
  bool renormalizes;
};

__device__ void write_narrow(const RouteCall& call, const float (&values)[run], std::int64_t at,
                             float inverse) {
  uint4 words;
  auto* pairs = reinterpret_cast<std::uint32_t*>(&words);
#pragma unroll
  for (int i = 0; i < run / 2; ++i) {
    const float a = values[2 * i], b = values[2 * i + 1];
    if (call.factors != nullptr) {
      const __half2 pair = __floats2half2_rn(a * inverse, b * inverse);
      pairs[i] = *reinterpret_cast<const std::uint32_t*>(&pair);
    } else {
      pairs[i] = pack_bf16x2(a, b);
    }
  }
  *reinterpret_cast<uint4*>(call.narrow + 2 * at) = words;
}

// A warp's part of the row and of the experts.
struct WarpWork {
  int rank, blocks;   // of this block in the cluster
  int quarter, slot;  // part of the row, and index among the experts that the block takes at once
  int begin, end;     // in runs
  int lane;

  __device__ explicit WarpWork(int cols)
      : rank(static_cast<int>(blockIdx.y)),
        blocks(static_cast<int>(gridDim.y)),
        quarter(static_cast<int>(threadIdx.x) / 32 % quarters),
        slot(static_cast<int>(threadIdx.x) / 32 / quarters),
        lane(static_cast<int>(threadIdx.x) % 32) {
    const int runs = cols / run, each = (runs + quarters - 1) / quarters;
    begin = min(runs, quarter * each);
    end = min(runs, begin + each);
  }
  __device__ int column(int j) const { return run * (begin + lane + 32 * j); }
  __device__ bool has(int j) const { return begin + lane + 32 * j < end; }
  __device__ int runs() const { return (end - begin + 31) / 32; }
  // The i-th expert of this block in a slot.
  __device__ int expert(int i, int in_slot) const { return (i * blocks + rank) * experts_at_once + in_slot; }
};

__device__ float dot(const float (&a)[run], const float (&b)[run]) {
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < run; ++i) sum += a[i] * b[i];
  return sum;
}

// Loads this warp's part of the row, keeps the first runs and returns its largest value.
__device__ float read_row(const RouteCall& call, const WarpWork& own, std::int64_t row,
                          float (&kept)[kept_runs][run]) {
  float largest = 0.0f;
  const auto look_at = [&](const float(&values)[run]) {
#pragma unroll
    for (int i = 0; i < run; ++i) largest = fmaxf(largest, fabsf(values[i]));
  };
#pragma unroll
  for (int j = 0; j < kept_runs; ++j) {
#pragma unroll
    for (int i = 0; i < run; ++i) kept[j][i] = 0.0f;
    if (own.has(j)) call.in.get_run(kept[j], row + own.column(j), run);
  }
#pragma unroll
  for (int j = 0; j < kept_runs; ++j) look_at(kept[j]);
  for (int j = kept_runs; j < own.runs(); ++j) {
    float values[run] = {};
    if (own.has(j)) call.in.get_run(values, row + own.column(j), run);
    look_at(values);
  }
  return warp_max(largest);
}

template <class Reader>
__device__ void load_weights(const Reader& router, const WarpWork& own, int expert, int count,
                             float (&weights)[kept_runs][run]) {
#pragma unroll
  for (int j = 0; j < kept_runs; ++j) {
#pragma unroll
    for (int i = 0; i < run; ++i) weights[j][i] = 0.0f;
    if (expert < count && own.has(j)) router.decode(weights[j], expert, own.column(j), run);
  }
}

// Writes the 16-bit row, by one block: every run by one of the warps that hold it.
__device__ void write_row(const RouteCall& call, const WarpWork& own, std::int64_t row,
                          const float (&kept)[kept_runs][run], const float* largest_of) {
  float largest = largest_of[0];
  for (int quarter = 1; quarter < quarters; ++quarter) largest = fmaxf(largest, largest_of[quarter]);
  const float factor = f16_factor(largest), inverse = 1.0f / factor;
#pragma unroll
  for (int j = 0; j < kept_runs; ++j) {
    if (own.has(j) && j % experts_at_once == own.slot) {
      write_narrow(call, kept[j], row + own.column(j), inverse);
    }
  }
  for (int j = kept_runs; j < own.runs(); ++j) {
    if (!own.has(j) || j % experts_at_once != own.slot) continue;
    float values[run];
    call.in.get_run(values, row + own.column(j), run);
    write_narrow(call, values, row + own.column(j), inverse);
  }
  if (call.factors != nullptr && threadIdx.x == 0) call.factors[blockIdx.x] = factor;
}

template <class Reader>
__global__ void __launch_bounds__(threads) route_rows_kernel(const Reader router, const RouteCall call) {
  extern __shared__ __align__(16) float sums[];  // [quarters, count], then [count] logits
  __shared__ float largest_of[quarters];
  float* logits = sums + quarters * call.count;
  const WarpWork own(call.cols);
  if (own.blocks > 1) cluster_arrive();  // no remote store before the target block has started
  float weights[kept_runs][run], kept[kept_runs][run];
  load_weights(router, own, own.expert(0, own.slot), call.count, weights);
  wait_for_previous();
  let_next_start();
  const std::int64_t row = std::int64_t{blockIdx.x} * call.cols;
  const float largest = read_row(call, own, row, kept);
  if (own.lane == 0 && own.slot == 0) largest_of[own.quarter] = largest;
  for (int i = 0; own.expert(i, 0) < call.count; ++i) {
    const int expert = own.expert(i, own.slot);
    if (i > 0) load_weights(router, own, expert, call.count, weights);
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < kept_runs; ++j) sum += dot(kept[j], weights[j]);
    for (int j = kept_runs; j < own.runs(); ++j) {
      float values[run] = {}, more[run] = {};
      if (expert < call.count && own.has(j)) {
        call.in.get_run(values, row + own.column(j), run);
        router.decode(more, expert, own.column(j), run);
      }
      sum += dot(values, more);
    }
    sum = warp_sum(sum);
    if (own.lane == 0 && expert < call.count) sums[own.quarter * call.count + expert] = sum;
  }
  __syncwarp();
  if (own.blocks > 1) cluster_wait();
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x);; i += threads) {
    const int expert = own.expert(i / experts_at_once, i % experts_at_once);
    if (own.expert(i / experts_at_once, 0) >= call.count) break;
    if (expert >= call.count) continue;
    float sum = call.bias == nullptr ? 0.0f : call.bias[expert];
    for (int quarter = 0; quarter < quarters; ++quarter) sum += sums[quarter * call.count + expert];
    if (own.blocks == 1) {
      logits[expert] = sum;
    } else {
      store_remote(remote_address(logits + expert, 0), __float_as_uint(sum));
    }
  }
  if (call.narrow != nullptr && own.rank == own.blocks - 1) write_row(call, own, row, kept, largest_of);
  __syncwarp();
  if (own.blocks > 1) {
    cluster_arrive();
    cluster_wait();
  } else {
    __syncthreads();
  }
  if (own.rank != 0 || threadIdx.x >= 32) return;
  const std::int64_t choices = std::int64_t{blockIdx.x} * call.active;
  choose_experts(call.experts + choices, call.shares + choices,
                 {logits, call.count, call.active, call.renormalizes}, own.lane);
}

// As many blocks per token as can be resident at once: a block takes all registers of an SM.
unsigned cluster_blocks_for(const Queue& queue, int tokens) {
  unsigned cluster_blocks = max_cluster_blocks;
  while (cluster_blocks > 1 && (tokens * static_cast<int>(cluster_blocks) > queue.multiprocessors ||
                                static_cast<int>(cluster_blocks) > queue.max_cluster)) {
    cluster_blocks /= 2;
  }
  return cluster_blocks;
}

}  // namespace

void route_rows(const Queue& queue, const RoutedRows& rows, const WeightView& router, const MoeMlp& spec) {
  const RouteCall call = {.in = elements_of(rows.in),
                          .narrow = rows.narrow.data,
                          .factors = rows.narrow.dtype == DType::f16 ? rows.factors : nullptr,
                          .bias = rows.bias,
                          .experts = rows.experts,
                          .shares = rows.shares,
                          .cols = rows.in.cols,
                          .count = spec.experts,
                          .active = spec.active,
                          .renormalizes = spec.renormalize};
  const unsigned cluster_blocks = cluster_blocks_for(queue, rows.in.rows);
  const Shape shape = {.grid = dim3(static_cast<unsigned>(rows.in.rows), cluster_blocks),
                       .threads = threads,
                       .shared = static_cast<std::size_t>(route_rows_bytes(spec.experts)),
                       .cluster = cluster_blocks};
  for_layout(router,
             [&]<class R>(const R& reader) { launch(queue, shape, route_rows_kernel<R>, reader, call); });
}

}  // namespace inferno::cuda
