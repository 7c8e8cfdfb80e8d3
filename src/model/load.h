// From an opened checkpoint to a decoder that runs, and a report of what was found on the way.
#pragma once

#include <memory>
#include <optional>
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

// `limits.context` 0 means the model's own. Float weights are rounded to `quantize` while they are read, as
// round_at_load() describes, with its errors. Error{invalid_request} if it exceeds the model's maximum,
// Error{io} with the footprint and what would fit if the device has too little memory, Error{unsupported} for
// types of the KV cache that the backend refuses; all of these before the weights are read.
LoadedModel load_model(const Checkpoint& checkpoint, Backend& backend, DecoderLimits limits,
                       std::optional<WeightFormat> quantize = {});

}  // namespace inferno
