// Which weights a spec asks for, and under which names a checkpoint may hold them. Both the loader and the
// generator of random models start from here.
#pragma once

#include <string>
#include <vector>

#include "model/architecture.h"

namespace inferno {

struct SlotRequest {
  Slot slot;
  int layer = -1;          // -1 outside the blocks
  std::vector<int> parts;  // output rows of each part (Q, K, V); a vector has one part of one row
  int cols = 0;
  int experts = 0;  // 0: not stacked over experts
  bool bias = false;
  bool is_vector = false;  // norms and sinks: kept as f32
};

// Every weight of the model, in the order in which the decoder uses them.
std::vector<SlotRequest> slot_requests(const ModelSpec& spec);

// The names to try, in order of preference; empty if such files cannot hold that weight. "{}" is already
// replaced by the layer; "{e}" is left for the expert.
struct NameChoice {
  std::vector<std::string> tensors;
  MatrixLayout layout = MatrixLayout::out_in;
  bool interleaved = false;
};
std::vector<NameChoice> names_for(const SlotRequest& request, const Architecture& arch, Container container);

std::string_view name_of(Slot slot);

// "{e}" replaced by the expert's index.
std::string for_expert(const std::string& name, int expert);

}  // namespace inferno
