// The constraint of one answer together with the request's stop tokens: fills the mask of each token and
// knows when the answer is complete.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/constraint.h"
#include "engine/request.h"

namespace inferno {

// The failure of a request whose constraint threw; called inside a handler.
Failed failure_of_constraint();

// Used by one thread at a time. Catches what the constraint throws: from then on every mask is empty, so that
// no further token can be sampled, and failure() says why.
class ConstrainedAnswer {
 public:
  // Stop tokens are excluded before position `min_end`, unless the constraint leaves nothing else. Ids
  // outside the vocabulary are ignored.
  ConstrainedAnswer(std::unique_ptr<Constraint> constraint, std::span<const TokenId> stop_tokens, int min_end,
                    int vocab);

  void fill(std::span<std::uint32_t> mask, int position);
  // Takes a sampled token that does not end the answer as a stop token. True if the answer is now complete.
  bool take(TokenId token);
  const std::optional<Failed>& failure() const { return failure_; }

 private:
  struct StopToken {
    TokenId token = 0;
    bool is_named = false;  // Constraint::names()
  };
  void fill_stop_tokens(std::span<std::uint32_t> mask, int position);

  std::unique_ptr<Constraint> constraint_;
  std::vector<StopToken> stop_tokens_;
  int min_end_ = 0;
  int vocab_ = 0;
  std::optional<Failed> failure_;
};

}  // namespace inferno
