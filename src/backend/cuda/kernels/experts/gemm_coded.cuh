// The parts of gemm_coded.cu: shared memory, the producer threads that issue TMA copies, and the consumer
// warp groups that decode and multiply.
#pragma once

#include "backend/cuda/device/tma.cuh"
#include "backend/cuda/device/wgmma.cuh"
#include "backend/cuda/kernels/experts/coded.cuh"

namespace inferno::cuda::coded {

using Codec = Mxfp4Fragments;
constexpr int group_threads = 128, groups = 2;  // consumer warp groups
constexpr int threads = (groups + 1) * group_threads, producers = 4;
constexpr int pairs = 4 * groups;                        // pairs of weight tiles, one per consumer warp
constexpr int batch = 64, batches = coded_rows / batch;  // tokens of one copy
constexpr int batch_bytes = batch * tile_k * 2;
constexpr int token_bytes = batches * batch_bytes, weight_bytes = 2 * pairs * chunk_bytes;
constexpr int stages = 5;
// Bytes of a token's activated elements; 16 of padding against bank conflicts.
constexpr int result_stride = tile_k * 2 + 16;
constexpr int result_bytes = coded_rows * result_stride;
constexpr int barriers = 2 * stages + 2;
constexpr int shared_bytes = stages * (token_bytes + weight_bytes) + result_bytes + 8 * barriers;
static_assert(batches == 4 && shared_bytes == coded_shared_bytes);

struct Smem {
  std::byte* start;
  __device__ std::byte* tokens(int stage) const { return start + stage * token_bytes; }
  __device__ std::byte* weights(int stage) const {
    return start + stages * token_bytes + stage * weight_bytes;
  }
  __device__ std::byte* results() const { return start + stages * (token_bytes + weight_bytes); }
  __device__ Mbarrier* full(int stage) const {
    return reinterpret_cast<Mbarrier*>(results() + result_bytes) + stage;
  }
  __device__ Mbarrier* empty(int stage) const { return full(stages + stage); }
  __device__ Mbarrier* results_full() const { return full(2 * stages); }
  __device__ Mbarrier* results_empty() const { return full(2 * stages + 1); }
};

__device__ inline int batches_of(const Tile& tile) {
  return (tile.tokens + batch - 1) / batch;
}

// One thread of each of four producer warps, the first two for weights, the others for tokens: a single
// thread that issues all six copies of a stage is 3 % slower if experts have few tokens. All four arrive at
// every stage, also without a copy, so that none falls a phase behind.
template <bool Gated>
struct Producer {
  const Arguments& call;
  const Smem& smem;
  const int warp;
  PipelineState next = {0, 1};  // in the first round every stage is empty

  __device__ void fill(const Tile& tile) {
    const bool has_weights = warp < 2;
    // A pair is a gate tile and the up tile of the same elements, or two neighboring tiles.
    const int first = tile.expert * call.tiles_between + (Gated ? tile.first_pair : 2 * tile.first_pair) +
                      (!Gated && warp == 1 ? pairs : 0);
    const int filled = batches_of(tile), own_batches = (filled - (warp - 2) + 1) / 2;
    const int bytes = has_weights ? weight_bytes / 2 : own_batches * batch_bytes;
    for (int chunk = 0; chunk < call.cols / tile_k; ++chunk) {
      Mbarrier* full = smem.full(next.stage);
      mbarrier_wait(smem.empty(next.stage), next.parity);
      mbarrier_arrive_expect_tx(full, static_cast<std::uint32_t>(bytes));
      if (has_weights) {
        tensor_copy(smem.weights(next.stage) + warp * (weight_bytes / 2),
                    warp == 0 ? call.weight_map : call.up_map, 0, chunk, first, full);
      } else {
        for (int i = warp - 2; i < filled; i += 2) {
          tensor_copy(smem.tokens(next.stage) + i * batch_bytes, call.token_map, chunk * tile_k,
                      tile.first + i * batch, full);
        }
      }
      next.advance(stages);
    }
  }
};

// Accumulators by groups of 64 tokens: only as many are used as the tile has tokens.
struct Sums {
  float first[32] = {}, second[32] = {}, third[32] = {}, fourth[32] = {};  // 64 tokens each
};

// A consumer warp: sixteen weight rows (a pair of tiles) by all tokens.
template <bool Gated>
class Consumer {
 public:
  __device__ Consumer(const Smem& smem, int warp)
      : smem_(smem),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_((Gated ? warp : 2 * warp) * chunk_bytes),
        second_((Gated ? warp + pairs : 2 * warp + 1) * chunk_bytes) {}

  // Two register sets alternate: one is decoded while the tensor cores read the other.
  __device__ void multiply(Sums& sums, int steps, int filled) {
    Operands even, odd;
    fence_operands(sums);
    decode(even);
    start(sums, even, filled);
    int step = 1;
    for (; step + 1 < steps; step += 2) {
      multiply_step(sums, odd, even, filled);
      multiply_step(sums, even, odd, filled);
    }
    if (step < steps) multiply_step(sums, odd, even, filled);
    wgmma_wait_group<0>();
    fence_operands(sums);
    release(place_.stage);
    place_.advance(stages);
  }

 private:
  using Operands = std::uint32_t[4][4];  // sixteen columns each

  __device__ void multiply_step(Sums& sums, Operands& next, Operands& before, int filled) {
    const int stage = place_.stage;
    place_.advance(stages);
    decode(next);
    start(sums, next, filled);
    wgmma_wait_group<1>();
#pragma unroll
    for (int i = 0; i < 4; ++i) wgmma_fence_operand(before[i]);
    release(stage);
  }
  __device__ void decode(Operands& out) const {
    const std::byte* weights = smem_.weights(place_.stage);
    const int g = lane_ / 4, t = lane_ % 4;
    mbarrier_wait(smem_.full(place_.stage), place_.parity);
    const Codec::Fragment first = Codec::load(weights + first_, g, t);
    const Codec::Fragment second = Codec::load(weights + second_, g, t);
#pragma unroll
    for (int run = 0; run < Codec::runs; ++run) {
      std::uint32_t a[4], b[4];
      Codec::decode(a, first, run);
      Codec::decode(b, second, run);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        std::uint32_t(&to)[4] = out[2 * run + half];
        to[0] = a[2 * half], to[1] = b[2 * half], to[2] = a[2 * half + 1], to[3] = b[2 * half + 1];
      }
    }
  }
  // Every condition starts or skips whole products: if accumulators took different control paths, the
  // compiler would serialize the wgmma instructions.
  __device__ void start(Sums& sums, const Operands& operands, int filled) const {
    const std::uint64_t tokens = wgmma_descriptor(smem_.tokens(place_.stage), Swizzle::bytes_128, 1024);
    start_with<0>(sums.first, operands, tokens);
    if (filled > 1) start_with<1>(sums.second, operands, tokens);
    if (filled > 2) start_with<2>(sums.third, operands, tokens);
    if (filled > 3) start_with<3>(sums.fourth, operands, tokens);
    wgmma_fence();  // otherwise the compiler inserts it here, with a warning
    wgmma_commit_group();
  }
  template <int Batch>
  __device__ static void start_with(float (&sums)[32], const Operands& operands, std::uint64_t tokens) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      wgmma(sums, operands[k], tokens + descriptor_offset(Batch * batch_bytes + 32 * k), /*adds=*/true);
    }
  }
  __device__ static void fence_operands(Sums& sums) {
    wgmma_fence_operand(sums.first);
    wgmma_fence_operand(sums.second);
    wgmma_fence_operand(sums.third);
    wgmma_fence_operand(sums.fourth);
  }
  __device__ void release(int stage) const {
    __syncwarp();
    mbarrier_arrive_warp(smem_.empty(stage), lane_);
  }

  const Smem& smem_;
  const int lane_, first_, second_;
  PipelineState place_ = {};
};

}  // namespace inferno::cuda::coded
