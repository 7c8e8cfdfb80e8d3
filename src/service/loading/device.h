// Chooses the device a model runs on from the name that a user gave.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace inferno {

struct DeviceOptions {
  std::string device = "auto";  // auto, cpu, cuda or cuda:N
  int threads = 0;              // 0: one per usable core
  std::string quantize = {};    // to which float weights are rounded at load; empty: as stored
  CacheChoice cache = {};       // types of the KV cache
};

// "auto" is the first GPU if one is usable, else the CPU. "cuda" is a GPU or an error, never the CPU.
// Error{invalid_request} for any other name.
std::unique_ptr<Backend> open_device(const DeviceOptions& options);

}  // namespace inferno
