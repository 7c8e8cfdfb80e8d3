// From a request's settings to the records that Backend::sample reads, and back from its results.
#pragma once

#include <span>
#include <vector>

#include "backend/backend.h"
#include "engine/request.h"

namespace inferno {

// One answer's settings, in the form that each step needs.
class SamplingState {
 public:
  SamplingState(const Sampling& sampling, std::uint64_t seed, std::span<const TokenId> prompt);

  // Counts a token of the answer.
  void add(TokenId token);

  // Whether the next draw depends on the answer's latest token in more than its logits.
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

// A step's draws under way.
struct Draws {
  Matrix results;  // the host's to read behind the mark
  std::uint64_t mark = 0;
};

// The memory of sampling, allocated once.
class Sampler {
 public:
  Sampler(Backend& backend, int rows, int list_entries, int max_alternatives);

  void clear();
  // The next row of logits belongs to an answer whose next token stands at `position`.
  void add(const SamplingState& state, int position);
  // Queues drawing for all rows added. `tokens`: those of SamplingInputs.
  Draws draw(Matrix logits, Matrix tokens);
  // Waits for them. Two steps' draws may be under way: these are valid until the second draw() behind theirs.
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
