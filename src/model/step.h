// A ragged batch on its way to the device: plain arrays in, StepInputs at fixed addresses out.
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
  Matrix reserve(int rows, int cols);
  void put(Matrix& to, const Matrix& whole, const std::vector<int>& values, int rows);

  Backend& backend_;
  StepLimits limits_;
  Buffer memory_;
  std::vector<int> image_;  // what the device shall have: sent at once where it is small
  StepInputs whole_;        // with the largest extents
  StepInputs current_;      // the same addresses, this step's extents
};

}  // namespace inferno
