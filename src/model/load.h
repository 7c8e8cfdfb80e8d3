// From an opened checkpoint to a decoder that runs, and a report of what was found on the way.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "model/decoder.h"
#include "model/footprint.h"

namespace inferno {

// A checkpoint understood, nothing read yet.
struct ModelDescription {
  const Architecture* architecture = nullptr;
  ModelSpec spec;
  std::vector<std::string> notes;
};

// Error{unsupported} for an unknown architecture or an unhandled config key that changes the mathematics,
// Error{corrupt} for a config that contradicts itself.
ModelDescription describe_model(const Checkpoint& checkpoint);

struct LoadReport {
  WeightFootprint weights;
  std::vector<std::string> notes;  // choices made while loading, one sentence each
  std::vector<Conversion> conversions;
};

struct LoadedModel {
  std::unique_ptr<Decoder> decoder;
  LoadReport report;
};

// `limits.context` 0 means the model's own. Error{invalid_request} if it exceeds the model's maximum,
// Error{io} with the footprint and what would fit if the device has too little memory.
LoadedModel load_model(const Checkpoint& checkpoint, Backend& backend, DecoderLimits limits);

}  // namespace inferno
