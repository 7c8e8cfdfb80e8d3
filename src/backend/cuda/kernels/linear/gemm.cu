// GEMM of many tokens, except on Hopper (gemm_hopper.cu): bf16 activations times bf16 weights by mma.sync,
// float accumulators. A block computes 128 tokens x 128 weight rows; eight warps take 64 x 32 each. Three
// stages of 64 columns (a chunk of the weights' tiles) in shared memory, filled by cp.async. Rows are 128
// bytes there, their eight 16-byte units swizzled by the row number, so that the eight rows of an ldmatrix
// are in different banks.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/tiles.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/linear.h"

namespace inferno::cuda {
namespace {

constexpr int tile_mn = gemm_rows, tile_k = 64, stages = 3, threads = 256;
constexpr int tile_bytes = tile_mn * tile_k * 2;
constexpr int shared_bytes = stages * 2 * tile_bytes;
constexpr int chunk_bytes = tiles::chunk_of(WeightFormat::bf16).bytes;
static_assert(tiles::chunk_of(WeightFormat::bf16).cols == tile_k);
constexpr int copies = tile_mn * 8 / threads;  // 16-byte units per thread and operand

struct GemmArguments {
  const std::byte *in, *weight;
  Elements out;
  const float* bias;
  std::int64_t bias_stride;
  int tokens, rows, cols, column, out_cols;
  const std::int32_t *tile_expert, *tile_first, *counts, *starts, *gather;
  int first_expert, experts;
};

// The tokens of this block: rows [first, first + count) of the output.
struct Rows {
  int first, count, expert;
};

__device__ Rows rows_of(const GemmArguments& call) {
  const int index = static_cast<int>(blockIdx.y);
  if (call.tile_expert == nullptr) return {index * tile_mn, min(tile_mn, call.tokens - index * tile_mn), 0};
  const int expert = call.tile_expert[index];
  if (expert < call.first_expert || expert >= call.first_expert + call.experts) return {0, 0, 0};
  const int first = call.tile_first[index];
  return {first, min(tile_mn, call.starts[expert] + call.counts[expert] - first), expert};
}

__device__ int swizzled(int row, int chunk) {
  return row * 128 + (chunk ^ (row & 7)) * 16;
}

class Loader {
 public:
  __device__ Loader(const GemmArguments& call, const Rows& rows, std::byte* smem)
      : cols_(call.cols), smem_(smem) {
    const int thread = static_cast<int>(threadIdx.x);
    const int first_row = static_cast<int>(blockIdx.x) * tile_mn;
    const std::int64_t token_bytes = std::int64_t{call.cols} * 2;
    const std::int64_t eight_rows = tiles::tile_bytes({tile_k, chunk_bytes}, call.cols);
    const std::int64_t expert_tiles = tiles::padded_rows(call.rows) / tiles::tile_rows;
    const std::byte* weight = call.weight + (rows.expert - call.first_expert) * expert_tiles * eight_rows;
    chunk_ = thread % 8;
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      const int r = thread / 8 + i * (threads / 8);
      has_token_[i] = r < rows.count;
      has_row_[i] = first_row + r < call.rows;
      const int token = rows.first + (has_token_[i] ? r : 0);
      tokens_[i] =
          call.in + (call.gather == nullptr ? token : call.gather[token]) * token_bytes + chunk_ * 16;
      const int row = has_row_[i] ? first_row + r : 0;
      rows_[i] =
          weight + row / tiles::tile_rows * eight_rows + tiles::run_16_bit(row % tiles::tile_rows, chunk_);
    }
  }

  __device__ void load(int step) {
    std::byte* to = smem_ + step % stages * (2 * tile_bytes);
    const int k = step * tile_k + chunk_ * 8;
    const bool inside = k < cols_;
    const std::int64_t offset = inside ? std::int64_t{step} * tile_k * 2 : -std::int64_t{chunk_} * 16;
#pragma unroll
    for (int i = 0; i < copies; ++i) {
      const int at = swizzled(static_cast<int>(threadIdx.x) / 8 + i * (threads / 8), chunk_);
      cp_async(to + at, tokens_[i] + offset, inside && has_token_[i]);
      cp_async(to + tile_bytes + at, rows_[i] + std::int64_t{step} * chunk_bytes, has_row_[i]);
    }
  }

 private:
  int cols_, chunk_;
  std::byte* smem_;
  const std::byte *tokens_[copies], *rows_[copies];
  bool has_token_[copies], has_row_[copies];
};

using Sums = float[4][4][4];  // 16 tokens each, 8 weight rows each, as in ptx.cuh

__device__ void multiply_stage(Sums& sums, const std::byte* stage, int warp_token, int warp_row, int lane) {
#pragma unroll
  for (int k = 0; k < tile_k / 16; ++k) {
    std::uint32_t a[4][4], b[2][4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      ldmatrix(a[i], stage + swizzled(warp_token + 16 * i + lane % 16, 2 * k + lane / 16));
    }
#pragma unroll
    for (int j = 0; j < 2; ++j) {
      const int row = warp_row + 16 * j + lane % 8 + lane / 16 * 8;
      ldmatrix(b[j], stage + tile_bytes + swizzled(row, 2 * k + lane / 8 % 2));
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        mma_bf16(sums[i][j], a[i][0], a[i][1], a[i][2], a[i][3], b[j / 2][j % 2 * 2],
                 b[j / 2][j % 2 * 2 + 1]);
      }
    }
  }
}

__device__ void store_pair(const GemmArguments& call, const Rows& rows, int token, int row, float low,
                           float high) {
  if (token >= rows.count || row >= call.rows) return;
  if (call.bias != nullptr) {
    const float* bias = call.bias + rows.expert * call.bias_stride + call.column + row;
    low += bias[0];
    if (row + 1 < call.rows) high += bias[1];
  }
  const std::int64_t at = std::int64_t{rows.first + token} * call.out_cols + call.column + row;
  if (row + 1 < call.rows && at % 2 == 0) {
    if (call.out.wide) {
      *reinterpret_cast<float2*>(call.out.data + at * 4) = make_float2(low, high);
    } else {
      *reinterpret_cast<std::uint32_t*>(call.out.data + at * 2) = pack_bf16x2(low, high);
    }
    return;
  }
  call.out.put(at, low);
  if (row + 1 < call.rows) call.out.put(at + 1, high);
}

__global__ void __launch_bounds__(threads, 2) gemm_kernel(const __grid_constant__ GemmArguments call) {
  extern __shared__ __align__(128) std::byte smem[];
  wait_for_previous();
  let_next_start();
  const Rows rows = rows_of(call);
  if (rows.count <= 0) return;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int warp_token = warp / 4 * 64, warp_row = warp % 4 * 32;
  Loader loader(call, rows, smem);
  const int steps = (call.cols + tile_k - 1) / tile_k;
  for (int s = 0; s < stages - 1; ++s) {
    if (s < steps) loader.load(s);
    cp_async_commit_group();
  }
  Sums sums = {};
  for (int s = 0; s < steps; ++s) {
    cp_async_wait_group<stages - 2>();
    __syncthreads();
    if (s + stages - 1 < steps) loader.load(s + stages - 1);
    cp_async_commit_group();
    multiply_stage(sums, smem + s % stages * (2 * tile_bytes), warp_token, warp_row, lane);
  }
  const int first_row = static_cast<int>(blockIdx.x) * tile_mn + warp_row + 2 * (lane % 4);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int token = warp_token + 16 * i + lane / 4, row = first_row + 8 * j;
      store_pair(call, rows, token, row, sums[i][j][0], sums[i][j][1]);
      store_pair(call, rows, token + 8, row, sums[i][j][2], sums[i][j][3]);
    }
  }
}

}  // namespace

void gemm(const Queue& queue, const GemmCall& call) {
  if (!call.parts.empty()) {
    GemmCall one = call;
    one.parts = {};
    for (const WeightView& part : call.parts) {
      one.weight = part.data;
      one.rows = part.rows;
      gemm(queue, one);
      one.column += part.rows;
    }
    return;
  }
  const Sorted* sorted = call.sorted;
  const GemmArguments arguments = {.in = call.in.data,
                                   .weight = call.weight,
                                   .out = elements_of(call.out),
                                   .bias = call.bias,
                                   .bias_stride = call.bias_stride,
                                   .tokens = call.out.rows,
                                   .rows = call.rows,
                                   .cols = call.cols,
                                   .column = call.column,
                                   .out_cols = call.out.cols,
                                   .tile_expert = sorted == nullptr ? nullptr : sorted->tile_expert,
                                   .tile_first = sorted == nullptr ? nullptr : sorted->tile_first,
                                   .counts = sorted == nullptr ? nullptr : sorted->counts,
                                   .starts = sorted == nullptr ? nullptr : sorted->starts,
                                   .gather = call.gathers ? sorted->tokens : nullptr,
                                   .first_expert = call.first_expert,
                                   .experts = call.experts};
  check(cudaFuncSetAttribute(gemm_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
  const unsigned tiles =
      sorted == nullptr ? blocks_for(call.out.rows, tile_mn) : static_cast<unsigned>(call.tiles);
  launch(queue,
         {.grid = dim3(blocks_for(call.rows, tile_mn), tiles), .threads = threads, .shared = shared_bytes},
         gemm_kernel, arguments);
}

}  // namespace inferno::cuda
