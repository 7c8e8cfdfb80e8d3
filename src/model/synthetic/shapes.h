// Configurations of well-known models, for measuring without their weights.
#pragma once

#include <span>
#include <string_view>

namespace inferno {

struct Shape {
  std::string_view name;     // "llama-3.2-1b"
  std::string_view type;     // config.json's "model_type"
  std::string_view weights;  // the format it is usually run in: "bf16", or "bf16+mxfp4" for dense and experts
  std::string_view config;   // config.json, the keys that matter
};

std::span<const Shape> shapes();

// Error{invalid_request} listing the names there are.
const Shape& shape_named(std::string_view name);

}  // namespace inferno
