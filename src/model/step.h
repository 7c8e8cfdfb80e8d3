// A ragged batch on its way to the device: plain arrays in, StepInputs out, at addresses that depend on the
// step's extents alone.
#pragma once

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

class StepBuffers {
 public:
  StepBuffers(Backend& backend, const StepLimits& limits, int groups, int block_size);

  // Valid until the next call.
  const StepInputs& fill(std::span<const StepSlice> slices);

 private:
  void lay_out(int tokens, int sequences, int logit_rows);
  std::span<int> image_of(const Matrix& matrix);
  void fill_group(std::span<const StepSlice> slices, std::size_t group);

  Backend& backend_;
  StepLimits limits_;
  Buffer memory_;
  std::vector<int> image_;  // what the device shall have, sent at once
  StepInputs step_;
};

}  // namespace inferno
