// A ragged batch on its way to the device: plain arrays in, StepInputs out, at addresses that depend on the
// step's extents alone.
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
  int start = 0;                             // position of the first of them
  int logits = 0;                            // how many of the last ones need logits
  std::vector<std::span<const int>> blocks;  // for each window group, the sequence's block table
};

struct StepLimits {
  int tokens = 0, sequences = 0, logit_rows = 0, blocks_per_sequence = 0;
};

// Where a step's tokens come from: the slices, or drawn_tokens(), where an earlier operation writes them.
enum class StepTokens : std::uint8_t { given, drawn };

class StepBuffers {
 public:
  StepBuffers(Backend& backend, const StepLimits& limits, int groups, int block_size);

  // Valid until the next call.
  const StepInputs& fill(std::span<const StepSlice> slices, StepTokens tokens = StepTokens::given);
  // The tokens of the next step, row by row, if they are to be `drawn`.
  Matrix drawn_tokens(int rows) const { return {memory_.data(), DType::i32, rows, 1}; }

 private:
  struct Extents {
    int tokens = 0, sequences = 0, logit_rows = 0;
    bool operator==(const Extents&) const = default;
  };
  void lay_out(const Extents& extents);
  std::span<int> image_of(const Matrix& matrix);
  void send(StepTokens tokens);
  void fill_group(std::span<const StepSlice> slices, std::size_t group);

  Backend& backend_;
  StepLimits limits_;
  Buffer memory_;
  std::vector<int> image_;  // what the device shall have
  std::vector<int> sent_;   // what it has; empty: something else
  Extents extents_;         // of both
  StepInputs step_;
};

}  // namespace inferno
