// A mixture of experts and tokens for it: mix_experts against the reference.
#pragma once

#include <vector>

#include "backend/backend.h"
#include "support/device.h"

namespace inferno {

struct ExpertsCase {
  MoeMlp spec;
  WeightFormat format = WeightFormat::f32;
  int width = 96;
  int tokens = 7;
  bool split_gate_up = false;  // two parts of `hidden` rows instead of one of twice as many
  bool is_reordered = false;   // the columns of every expert have an order of their own
  bool has_favourite = false;  // every token chooses expert 1
  WeightFormat router = WeightFormat::f32;
  bool float_input = false;                    // as in a decoder, independent of the type that products read
  double min_margin = 0.05, max_margin = 1e9;  // between the logits of the last expert chosen and the next
};

// Gated by silu, with 32 hidden elements.
MoeMlp experts_of(int experts, int active);

void expect_experts_agree(Device& device, const ExpertsCase& c);

}  // namespace inferno
