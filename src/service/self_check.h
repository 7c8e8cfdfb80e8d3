// Whether this machine computes correct results: the built-in model's tokens against the reference.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "backend/backend.h"
#include "service/loading/device.h"

namespace inferno {

struct SelfTest {
  DeviceInfo device;
  std::size_t tokens = 0;        // of the reference
  std::size_t equal_tokens = 0;  // before the first that differs
  double milliseconds = 0;

  bool has_passed() const { return equal_tokens == tokens; }
  std::string summary() const;  // one line
};

// `model` is the folder of the built-in model. Errors of open_device() and load_model().
SelfTest run_self_test(const std::filesystem::path& model, const DeviceOptions& options);

}  // namespace inferno
