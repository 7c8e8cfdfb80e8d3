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

  // Counts a token of the answer.
  void add(TokenId token);

  // Whether sampling the next token needs the latest one in more than its logits: penalties do.
  bool looks_back() const { return penalizes_; }
  const SamplingRow& row() const { return row_; }
  std::uint64_t seed() const { return std::uint64_t{row_.seed_high} << 32 | row_.seed_low; }
  std::span<const ListEntry> history() const { return history_; }
  std::span<const ListEntry> bias() const { return bias_; }
  std::span<const ListEntry> allowed() const { return allowed_; }

 private:
  SamplingRow row_;
  bool penalizes_ = false;
  std::vector<ListEntry> history_, bias_, allowed_;  // ascending
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

// Samples the tokens of a step. All memory is allocated at construction.
class Sampler {
 public:
  Sampler(Backend& backend, int rows, int list_entries, int max_alternatives);

  void clear();
  // Adds a row of logits, for the token at `position` of an answer.
  void add(const SamplingState& state, int position);
  // Queues sampling for all rows added. `tokens` is SamplingInputs::tokens.
  Draws draw(Matrix logits, Matrix tokens);
  // Waits for the tokens. Two steps may be queued at once: results stay valid until the second draw() after
  // theirs.
  std::vector<Drawn> read(const Draws& draws);

 private:
  ListRange append(std::span<const ListEntry> list);

  Backend& backend_;
  std::vector<Buffer> memory_;
  Matrix rows_, lists_, results_[2];
  std::size_t turn_ = 0;
  std::vector<SamplingRow> row_values_;
  std::vector<ListEntry> list_values_;
};

}  // namespace inferno
