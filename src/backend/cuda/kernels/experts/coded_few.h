// Products of few tokens per expert directly from MXFP4 tiles, on Hopper.
// Launchers queue work and return; none allocates or waits.
#pragma once

#include <span>

#include "backend/cuda/kernels/experts/experts.h"

namespace inferno::cuda {

// A tile of the sorted choices has at most `rows` places, one of coded_few_rows; rows of `in` and `out` are
// in order of places. Inputs and gated results are f16; each 64 columns are in the order that
// arrange_choices_f16() and coded_few_gated() write.
struct CodedFewProduct {
  Matrix out, in;
  int rows = 0;
  const float* factors = nullptr;  // of each row of `in`; read by the gated product only
  const float* bias = nullptr;
  std::int64_t bias_stride = 0;
  const Sorted* sorted = nullptr;
  std::int32_t tiles = 0;
};
// out [choices, cols]: for each choice its token's row of `in`, divided by a power of two, which is the
// factor of that row of `out`.
void arrange_choices_f16(const Queue& queue, Matrix out, float* factors, Matrix in, const Sorted& sorted,
                         int active);
// Must directly follow arrange_choices_f16(): it reads the tiles before that kernel has ended.
void coded_few_gated(const Queue& queue, std::span<const WeightView> gate_up, const CodedFewProduct& product,
                     const ActivationSpec& activation);
// Must directly follow coded_few_gated() of the same tiles. Results are f32.
void coded_few_plain(const Queue& queue, const WeightView& weight, const CodedFewProduct& product);

}  // namespace inferno::cuda
