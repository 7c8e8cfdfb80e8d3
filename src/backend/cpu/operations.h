// The CPU backend's operations. They follow the contract in backend/backend.h, which also describes the
// shapes; all activations are f32, and the cache may have any type.
#pragma once

#include <span>

#include "backend/backend.h"
#include "backend/cpu/kernels.h"
#include "backend/cpu/memory.h"
#include "base/thread_pool.h"

namespace inferno::cpu {

// Rows of a Matrix in host memory.
inline float* floats(const Matrix& matrix, std::int64_t row = 0) {
  return reinterpret_cast<float*>(matrix.data) + row * matrix.cols;
}
inline const std::int32_t* integers(const Matrix& matrix, std::int64_t row = 0) {
  return reinterpret_cast<const std::int32_t*>(matrix.data) + row * matrix.cols;
}

struct Compute {
  ThreadPool& pool;
  Scratch& scratch;
  const Kernels* kernels;  // null: plain C++ everywhere
};

// The grain of a parallel loop over `count` rows of `cost` elements each: small enough to balance the
// threads, large enough to be worth handing out.
std::int64_t grain_for(const ThreadPool& pool, std::int64_t count, std::int64_t cost);

void embed(const Compute& compute, Matrix out, const Weight& table, Matrix tokens, float scale);
void add_positions(const Compute& compute, Matrix x, const Weight& table, Matrix positions);
void add_norm(const Compute& compute, Matrix out, Matrix residual, Matrix delta, float scale,
              const Norm& norm);
// One row of `width` elements; out may be in.
void normalize(const Compute& compute, float* out, const float* in, int width, const Norm& norm);
void linear(const Compute& compute, Matrix out, Matrix in, const Linear& weights);
void rotate_and_store(const Compute& compute, Matrix qkv, Matrix rope_table, const AttentionCall& call);
void attend(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call);
void activate(const Compute& compute, Matrix out, Matrix in, const ActivationSpec& activation);
void mix_experts(const Compute& compute, Matrix out, Matrix in, const MoeMlp& spec,
                 const MoeWeights& weights);
void sample(const Compute& compute, Matrix out, Matrix logits, const SamplingInputs& inputs);

// The rows that one expert computes: out row first + i = in row input[i] * expert's weights. A linear without
// experts is one batch of all rows.
struct ExpertBatch {
  int expert = 0;
  int first = 0;
  std::span<const std::int32_t> input;  // empty: rows first, first + 1, ...
  int count = 0;
};
const float* floats_of(const Matrix& in, const ExpertBatch& batch, int i);  // row i of a batch
void multiply(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
              std::span<const ExpertBatch> batches);

// multiply() and attend() with vector kernels, on weights that were packed for them.
void multiply_panels(const Compute& compute, Matrix out, Matrix in, const Linear& weights,
                     std::span<const ExpertBatch> batches);
void attend_tiles(const Compute& compute, Matrix out, Matrix qkv, const AttentionCall& call);

// One head of a cache, as the operations see it.
struct CacheHead {
  CacheHead(const Matrix& cache, const Matrix& scales, int head, int head_dim)
      : matrix(cache),
        dim(head_dim),
        offset(bytes_for(cache.dtype, static_cast<std::size_t>(head) * static_cast<std::size_t>(head_dim))),
        scale(scales ? floats(scales)[head] : 1.0f) {}

  std::byte* at(std::int64_t row) const {
    return matrix.data + static_cast<std::size_t>(row) * matrix.row_bytes() + offset;
  }
  // Rounds dim floats to the type of the cache. What is not finite, or too large for a block, stays visible
  // as NaN or infinity; FP8 has neither infinity nor values above 448 and takes the largest instead.
  void store(std::int64_t row, const float* from) const;
  // The floats of a row: in the cache itself, or decoded to `room`, which has room for dim, rounded up to 16.
  const float* read(const Compute& compute, std::int64_t row, float* room) const;

  Matrix matrix;
  int dim;
  std::size_t offset;  // of the head, in a row
  float scale;         // of FP8
};
inline CacheHead key_head(const AttentionCall& call, int head) {
  return {call.cache.keys, call.weights.key_scales, head, call.spec.head_dim};
}
inline CacheHead value_head(const AttentionCall& call, int head) {
  return {call.cache.values, call.weights.value_scales, head, call.spec.head_dim};
}

// Upper bounds of the floats that operations take from Scratch, for Backend::workspace_bytes().
struct ScratchFloats {
  std::size_t own = 0;     // of one worker
  std::size_t shared = 0;  // of all workers together
};
ScratchFloats attend_tiles_scratch(const AttentionSpec& spec, int threads, int context);
// `rows` rows in `batches` batches times a weight.
ScratchFloats multiply_panels_scratch(const Kernels& kernels, const WeightShape& weight, std::int64_t rows,
                                      std::int64_t batches);

}  // namespace inferno::cpu
