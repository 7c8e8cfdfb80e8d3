// The device a model runs on, as a user names it.
#pragma once

#include <memory>
#include <string>

#include "backend/backend.h"

namespace inferno {

struct DeviceOptions {
  std::string device = "auto";  // auto, cpu, cuda or cuda:N
  int threads = 0;              // 0: one per usable core
};

// "auto" is the first GPU if one is usable, else the CPU. "cuda" is a GPU or an error, never the CPU.
// Error{invalid_request} for any other name.
std::unique_ptr<Backend> open_device(const DeviceOptions& options);

}  // namespace inferno
