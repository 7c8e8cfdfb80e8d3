// Uploads a ragged batch: plain arrays in, StepInputs out, at addresses that depend only on the extents of
// the step, so that a recorded graph can be replayed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "base/token.h"

namespace inferno {

// The part of one sequence that runs in this step.
struct StepSlice {
  std::span<const TokenId> tokens;
  int start = 0;                             // position of the first token
  int logits = 0;                            // number of tokens at the end that need logits
  std::vector<std::span<const int>> blocks;  // for each window group, the sequence's block table
  // The row of drawn_tokens() that has the slice's only token; given: it is in `tokens`.
  static constexpr int given = -1;
  int drawn = given;
};

struct StepLimits {
  int tokens = 0, sequences = 0, logit_rows = 0, blocks_per_sequence = 0;
};

// Where the tokens of a step come from: its slices, drawn_tokens() in the same order, to which an earlier
// operation sampled them, or both.
enum class StepTokens : std::uint8_t { given, drawn, gathered };

class StepBuffers {
 public:
  StepBuffers(Backend& backend, const StepLimits& limits, int groups, int block_size);

  // Valid until the next call.
  const StepInputs& fill(std::span<const StepSlice> slices);
  // Where the sampler writes tokens for the next step.
  Matrix drawn_tokens(int rows) const { return {memory_.data(), DType::i32, rows, 1}; }

 private:
  struct Extents {
    int tokens = 0, sequences = 0, logit_rows = 0;
    int blocks = 0;        // columns of the block tables
    bool gathers = false;  // its tokens
    bool operator==(const Extents&) const = default;
  };
  void lay_out(const Extents& extents);
  std::span<int> image_of(const Matrix& matrix);
  int table_columns(std::span<const StepSlice> slices) const;
  void fill_tokens(std::span<const StepSlice> slices);
  void upload(StepTokens tokens);
  void fill_group(std::span<const StepSlice> slices, std::size_t group);

  Backend& backend_;
  StepLimits limits_;
  Buffer memory_;
  std::vector<int> image_;     // contents for the device
  std::vector<int> uploaded_;  // contents on the device; empty if they are unknown
  Extents extents_;            // of image_ and uploaded_
  // Of a step with gathered tokens: those that are given, and for each row where its token is, in integers
  // from the start of the memory.
  Matrix given_, sources_;     // i32 [tokens, 1]
  std::size_t drawn_end_ = 0;  // in integers: end of the tokens that the sampler writes
  StepInputs step_;
};

}  // namespace inferno
