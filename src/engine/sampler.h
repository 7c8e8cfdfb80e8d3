// Turns the settings of requests into the records that Backend::sample reads, and its results into tokens.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "engine/request.h"

namespace inferno {

// The sampling settings of one answer, in the form that each step needs.
class SamplingState {
 public:
  SamplingState(const Sampling& sampling, std::uint64_t seed, std::span<const TokenId> prompt);

  // Bans `tokens` at positions before `end`. Ids outside the vocabulary are ignored.
  void ban_before(int end, std::span<const TokenId> tokens, int vocab);
  // Counts a token of the answer.
  void add(TokenId token);

  // Whether sampling the next token needs the latest one in more than its logits: penalties do.
  bool looks_back() const { return penalizes_; }
  const SamplingRow& row() const { return row_; }
  std::uint64_t seed() const { return std::uint64_t{row_.seed_high} << 32 | row_.seed_low; }
  std::span<const ListEntry> history() const { return history_; }
  std::span<const ListEntry> bias(int position) const { return position < early_end_ ? early_bias_ : bias_; }
  std::span<const ListEntry> allowed() const { return allowed_; }

 private:
  SamplingRow row_;
  bool penalizes_ = false;
  std::vector<ListEntry> history_, bias_, allowed_;  // ascending
  std::vector<ListEntry> early_bias_;                // instead of bias_ before early_end_
  int early_end_ = 0;
};

struct Drawn {
  SampleHead head;
  std::span<const ListEntry> alternatives;
};

// Tokens of one step that are being sampled.
struct Draws {
  Matrix results;  // readable by the host once the mark was waited for
  std::uint64_t mark = 0;
};

// The largest step.
struct SamplerLimits {
  int rows = 0;
  int list_entries = 0;
  int max_alternatives = 0;
  int vocab = 0;
};

// Samples the tokens of a step. All memory is allocated at construction.
class Sampler {
 public:
  Sampler(Backend& backend, const SamplerLimits& limits);

  void clear();
  // Adds a row of logits, for the token at `position` of an answer.
  void add(const SamplingState& state, int position);
  // Gives the row added last a mask and returns its words, to be written before draw():
  // SamplingInputs::masks.
  std::span<std::uint32_t> add_mask();
  // Adds a row of logits whose result is not read.
  void add_unread();
  // Adds a row of logits whose next token is given: its result is the token's log probability.
  void add_given(TokenId token, int alternatives);
  // Queues sampling for all rows added. `tokens` is SamplingInputs::tokens.
  Draws draw(Matrix logits, Matrix tokens);
  // Waits for the tokens. Two steps may be queued at once: results stay valid until the second draw() after
  // theirs.
  std::vector<Drawn> read(const Draws& draws);

 private:
  ListRange append(std::span<const ListEntry> list);

  Backend& backend_;
  std::vector<Buffer> memory_;
  Matrix rows_, lists_, masks_, results_[2];
  std::size_t turn_ = 0;
  std::vector<SamplingRow> row_values_;
  std::vector<ListEntry> list_values_;
  int mask_count_ = 0;
  std::vector<std::uint32_t> mask_values_;  // room for every row
};

}  // namespace inferno
