// The forward pass, one for every architecture and every device.
#pragma once

#include <span>
#include <vector>

#include "model/weights.h"

namespace inferno {

struct DecoderLimits {
  int max_tokens = 512;    // rows of one step
  int max_logit_rows = 1;  // rows with logits
  int context = 0;         // positions a sequence may reach; the rotary table is made for it
  CacheChoice cache = {};  // how keys and values are stored between steps
};

// Bytes that a decoder with these limits allocates for activations and the rotary table. The backend adds its
// own workspaces.
std::size_t activation_bytes(const ModelSpec& spec, const DecoderLimits& limits, DType type);

class Decoder {
 public:
  Decoder(ModelSpec spec, ModelWeights weights, Backend& backend, DecoderLimits limits);

  const ModelSpec& spec() const { return spec_; }
  const ModelWeights& weights() const { return weights_; }
  const DecoderLimits& limits() const { return limits_; }
  // Of the caches that forward() is given.
  CacheTypes cache_types() const { return limits_.cache.with_default(backend_.cache_type()); }

  // Queues the step. The result has one row for each of step.logit_rows; the next call overwrites it. Tokens
  // without logits still enter the cache.
  Matrix forward(const StepInputs& step, std::span<const KvLayer> cache);

 private:
  // One overload per alternative of a spec variant: a new kind does not compile until it is handled.
  void place(const Rope&, const StepInputs&) {}  // rotated inside attention
  void place(const LearnedPositions&, const StepInputs& step);
  // A block reads norm(residual) and returns the same for the next block.
  NormedRows block(std::size_t layer, const StepInputs& step, KvLayer cache, NormedRows normed);
  NormedRows serial_block(const DenseMlp& spec, std::size_t layer, Matrix attended);
  NormedRows serial_block(const MoeMlp& spec, std::size_t layer, Matrix attended);
  NormedRows parallel_block(const DenseMlp& spec, std::size_t layer, Matrix attended, Matrix normed);
  NormedRows parallel_block(const MoeMlp& spec, std::size_t layer, Matrix attended, Matrix normed);
  Matrix attention(std::size_t layer, const StepInputs& step, KvLayer cache, NormedRows normed);
  Matrix widen(const DenseMlp& spec, const DenseWeights& weights, NormedRows normed);
  const Norm& norm_before(std::size_t layer) const;  // after the last layer: the final norm
  void allocate_activations();
  void queue(const StepInputs& step, std::span<const KvLayer> cache);
  std::span<const std::uint64_t> replay_key(const StepInputs& step, std::span<const KvLayer> cache);

  ModelSpec spec_;
  ModelWeights weights_;
  Backend& backend_;
  DecoderLimits limits_;
  std::vector<std::size_t> group_of_layer_;  // into StepInputs::groups
  std::vector<std::uint64_t> replay_key_;    // of the latest step; kept for its memory

  // Activations, allocated once for the largest batch.
  std::vector<Buffer> memory_;
  Matrix rope_table_;           // [context, rope dims]
  Matrix residual_;             // f32 [tokens, width]
  Matrix branch_, mlp_branch_;  // f32 [tokens, width]; the second only for parallel blocks
  Matrix routed_;               // f32 [tokens, width]: what mixtures of experts read
  Matrix qkv_, wide_;           // f32 [tokens, (heads + 2 * kv_heads) * head_dim], [tokens, 2 * hidden]
  Matrix normed_, attended_;    // [tokens, width], [tokens, heads * head_dim]
  Matrix activated_;            // [tokens, hidden]
  Matrix last_, logits_;        // [logit rows, width], f32 [logit rows, vocab]
};

}  // namespace inferno
