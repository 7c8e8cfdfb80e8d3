// A decoder without an engine: for logits, perplexity, bench and tests. Every sequence owns its cache blocks
// from the start, so there is nothing to schedule.
#pragma once

#include <span>
#include <vector>

#include "base/token.h"
#include "model/decoder.h"
#include "model/kv_cache.h"
#include "model/step.h"

namespace inferno {

struct BatchShape {
  int sequences = 1;
  int context = 0;  // tokens that each sequence may have
  int block_size = 32;
  bool scattered = false;  // block tables in random order, as after a long time in a server
};

// Several sequences at once, each at its own position.
class BatchRunner {
 public:
  BatchRunner(Decoder& decoder, Backend& backend, const BatchShape& shape);

  struct Input {
    int sequence = 0;
    std::span<const TokenId> tokens;
    int start = 0;   // position of the first token
    int logits = 0;  // number of tokens at the end that need logits
  };
  // Queues one step. Returns f32 [logits, vocab], which the next step overwrites.
  Matrix step(std::span<const Input> inputs, StepTokens tokens = StepTokens::given);
  // Waits for the step and copies its logits.
  std::vector<float> read(const Matrix& logits);

  // Where an operation may write the tokens of a step that is called with StepTokens::drawn.
  Matrix drawn_tokens(int rows) const { return buffers_.drawn_tokens(rows); }
  Decoder& decoder() const { return decoder_; }
  Backend& backend() const { return backend_; }

 private:
  Decoder& decoder_;
  Backend& backend_;
  std::vector<std::vector<std::vector<int>>> block_tables_;  // [sequence][window group]
  KvCache cache_;
  StepBuffers buffers_;
};

// One sequence, fed in chunks that fit the decoder's limits.
class Runner {
 public:
  Runner(Decoder& decoder, Backend& backend, int context);

  int position() const { return position_; }
  void reset() { position_ = 0; }

  // Continues the sequence and returns the logits of the last `rows` tokens, f32 [rows, vocab].
  // Error{invalid_request} if the context is full or a token is not in the vocabulary.
  std::vector<float> feed(std::span<const TokenId> tokens, int rows);

 private:
  BatchRunner batch_;
  int context_;
  int position_ = 0;
};

// The logits of each sequence's last token, f32 [sequences, vocab]. The last tokens share one step, as they
// do when a server answers many requests. No sequence may be empty or longer than the decoder's context, and
// the decoder's limits must allow a row for each sequence. Error{invalid_request} as Runner::feed().
std::vector<float> last_logits(Decoder& decoder, Backend& backend,
                               std::span<const std::vector<TokenId>> sequences);

}  // namespace inferno
