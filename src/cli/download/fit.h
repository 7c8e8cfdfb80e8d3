// Whether a model that is not on this machine would fit its memory: the footprint that `plan` prints, as far
// as it is known without the headers of the model's files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/footprint.h"

namespace inferno {

// The memory that would hold a model.
struct LocalMemory {
  std::string name;  // "GPU" or "memory"
  DeviceMemory device;
};
LocalMemory local_memory(const Backend& backend);  // which must outlive the result

struct ListedModel {
  std::uint64_t weight_bytes = 0;  // more than 0
  std::uint64_t parameters = 0;    // 0: unknown
  std::uint64_t context = 0;       // tokens; 0: unknown. Read only if `config` describes no model
  std::string config = {};         // config.json, complete or not
};

struct EstimatedFit {
  Footprint footprint;
  bool is_estimate = true;  // cache and workspace are those of a typical model of that size
};
EstimatedFit estimate_fit(const ListedModel& model, const DeviceMemory& device);

// "It needs about 70.1 GB of memory, but this machine has only 21.3 GB free"; empty if the model fits, or if
// the memory or the size of the weights is unknown.
std::string memory_shortage(const ListedModel& model, const LocalMemory& memory);

// The same for the device that a model would run on unless another one is chosen.
std::string memory_shortage(const ListedModel& model);

}  // namespace inferno
