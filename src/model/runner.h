// One sequence through a decoder, without an engine: what logits, perplexity and tests need.
#pragma once

#include <span>
#include <vector>

#include "model/decoder.h"
#include "model/kv_cache.h"
#include "model/step.h"

namespace inferno {

class Runner {
 public:
  // `context` tokens at most; the decoder's limits bound each step, longer input is fed in chunks.
  Runner(Decoder& decoder, Backend& backend, int context);

  int position() const { return position_; }
  void reset() { position_ = 0; }

  // Continues the sequence and returns the logits of the last `rows` tokens fed, f32 [rows, vocab].
  // Error{invalid_request} when the context is full or a token is not in the vocabulary.
  std::vector<float> feed(std::span<const TokenId> tokens, int rows);

 private:
  void step(std::span<const TokenId> tokens, int rows, std::vector<float>& logits);

  static constexpr int block_size = 32;
  Decoder& decoder_;
  Backend& backend_;
  int context_;
  int position_ = 0;
  std::vector<int> blocks_;  // 0, 1, 2, …: the same for every window group
  KvCache cache_;
  StepBuffers buffers_;
};

}  // namespace inferno
