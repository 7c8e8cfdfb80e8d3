// How the tensors of a checkpoint become the weights of a decoder: found, checked, and only then read.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "model/slots.h"

namespace inferno {

// One part of a slot: one tensor, or one for each expert.
struct PlannedPart {
  std::vector<std::string> names;
  std::vector<StoredTensor> tensors;
  std::vector<StoredTensor> biases;  // as many as tensors, or none
  std::vector<std::string> bias_names;
  std::optional<WeightFormat> rounded = {};  // to which the weights are rounded while they are read
  int rows = 0;                              // of one expert
  int experts = 0;                           // 0: no experts
  bool transposed = false;
  bool interleaved = false;
  int rotary_heads =
      0;  // > 0: rows of each head alternate between its halves, as GGUF stores Llama's Q and K
};

// The format in which a backend gets the weights.
inline WeightFormat loaded_format(const PlannedPart& part) {
  return part.rounded.value_or(part.tensors.front().format);
}

struct PlannedSlot {
  SlotRequest request;
  std::vector<PlannedPart> parts;
};

struct TensorPlan {
  std::vector<PlannedSlot> slots;     // in the order of slot_requests()
  std::vector<std::string> problems;  // empty when everything fits
};

// Problems are tensors that are missing or have another shape, and tensors that nothing asks for, unless they
// are known to be harmless leftovers (masks, cached frequencies).
TensorPlan plan_tensors(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint);

// Error{corrupt} naming every problem at once, if there is one.
void require_complete(const TensorPlan& plan, const Checkpoint& checkpoint);

// The part as a backend loads it; its read() reads the files.
WeightSource source_of(const PlannedPart& part, int cols);

// The part's bytes in the decoder's order: [experts, rows, cols] in the stored format.
std::vector<std::byte> read_part(const PlannedPart& part, int cols);

// The biases of a slot's rows as floats: [experts or 1, sum of rows].
std::vector<float> read_biases(const PlannedSlot& slot);

// A whole tensor as floats.
std::vector<float> read_floats(const StoredTensor& tensor);

}  // namespace inferno
