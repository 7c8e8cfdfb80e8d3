// What a model will take of a device's memory, known from its headers before a byte of it is read.
#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/checkpoint.h"
#include "model/decoder.h"

namespace inferno {

struct MemoryPlan {
  std::uint64_t parameters = 0;
  std::uint64_t weights = 0;      // bytes, as stored
  std::uint64_t activations = 0;  // for the largest step
  std::uint64_t cache = 0;        // of one sequence that fills the context
  int context = 0;

  // Nothing runs with less: a cache may be smaller than the context asks for.
  std::uint64_t least() const { return weights + activations; }
};

MemoryPlan plan_memory(const ModelSpec& spec, const Checkpoint& checkpoint, const DecoderLimits& limits,
                       const Backend& backend);

// Error{io} with the plan and what would fit, when the device has not even room for the least.
void refuse_what_cannot_fit(const MemoryPlan& plan, const std::string& model, const DeviceInfo& device);

}  // namespace inferno
