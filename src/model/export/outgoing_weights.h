// Weights on their way from one checkpoint into another: read in the decoder's order, a matrix or a run of
// rows at a time, put into the target's order and converted.
#pragma once

#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "checkpoint/gguf/writer.h"
#include "model/tensor_plan.h"

namespace inferno {

struct OutgoingWeight {
  std::string name;
  std::shared_ptr<const PlannedSlot> slot;
  std::size_t part = 0;
  int first_row = 0;  // of the part, in the decoder's order
  int rows = 0;
  int bias_column = 0;   // index of the first row among the rows of all parts
  int rotary_heads = 0;  // > 0: the two halves of each head alternate row by row in the target
  WeightFormat format = WeightFormat::f32;
};

// When written: Error{corrupt} naming the tensor when a value is not finite or does not fit the format.
OutgoingTensor outgoing_weight(const OutgoingWeight& weight, ThreadPool& pool);
OutgoingTensor outgoing_bias(const OutgoingWeight& weight);

}  // namespace inferno
