// What the tokens of one answer must satisfy: the engine's only view of schemas, grammars and formats.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/token.h"

namespace inferno {

// Used by one thread at a time, not always the same one. Whatever a call throws ends the one request with its
// message, never the engine.
class Constraint {
 public:
  virtual ~Constraint() = default;

  // Writes every word: bit t % 32 of word t / 32 says whether token t may come next. The mask covers the
  // model's vocabulary, which may be larger than the tokenizer's. May be called again without a take()
  // between.
  virtual void fill(std::span<std::uint32_t> mask) = 0;
  // A token that fill() allowed. Not called with the stop token that ends the answer.
  virtual void take(TokenId token) = 0;
  // Whether the text so far is a complete answer: the request's stop tokens are then allowed, and only then,
  // except those that the constraint names.
  virtual bool may_end() = 0;
  // Whether nothing can follow: the answer then ends at once with FinishReason::stop, without a stop token.
  virtual bool is_finished() = 0;
  // Whether fill() itself decides where this stop token may stand, as a format does whose messages end in
  // different control tokens. Constant.
  virtual bool names(TokenId /*stop_token*/) const { return false; }
  // A copy in the same state, for another answer. Several threads may fork the same constraint at once.
  virtual std::unique_ptr<Constraint> fork() const = 0;
};

}  // namespace inferno
