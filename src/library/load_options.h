// The caller's options for loading, in the terms of the service and the catalogue.
#pragma once

#include <inferno/inferno.h>

#include <cstdint>
#include <string>

#include "catalogue/catalogue.h"
#include "service/text_model.h"

namespace inferno::library {

// A callback of the caller for messages; may be absent. Never throws.
struct Log {
  inferno_log_callback callback = nullptr;
  void* context = nullptr;

  explicit operator bool() const { return callback != nullptr; }
  void operator()(inferno_log_level level, const std::string& message) const;
};

// The caller's progress callback; may be absent.
struct Progress {
  inferno_progress_callback callback = nullptr;
  void* context = nullptr;

  // Whether the caller wants to go on.
  bool operator()(std::uint64_t done, std::uint64_t total) const;
};

struct LoadSettings {
  TextModelOptions model;
  CatalogueSettings catalogue;
  Log log;
  Progress progress;
};

// Error{invalid_request} naming the field for a value out of range. `options` may be NULL.
LoadSettings read_load_options(const inferno_load_options* options);

}  // namespace inferno::library
