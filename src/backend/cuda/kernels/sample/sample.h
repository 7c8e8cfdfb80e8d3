// The choice of the next token from logits.
// Launchers queue work and return; none allocates or waits. Shapes as in backend.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/backend.h"
#include "backend/cuda/queue.h"

namespace inferno::cuda {

// Room for one row being sampled, `sample_rows_at_once` times over.
constexpr int sample_rows_at_once = 16;
constexpr std::size_t sample_floats(std::int64_t vocab) {
  return static_cast<std::size_t>(vocab) * 5;
}
void sample(const Queue& queue, Matrix out, Matrix logits, const SamplingInputs& inputs, float* scratch);

}  // namespace inferno::cuda
