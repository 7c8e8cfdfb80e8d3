// A model on disk: its hyperparameters and its tensors. Two implementations: gguf/ and safetensors/. Files
// are untrusted: every count and size is checked before it is used or memory is allocated for it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/config.h"
#include "tensor/stored_tensor.h"

namespace inferno {

enum class Container { safetensors, gguf };

class Checkpoint {
 public:
  virtual ~Checkpoint() = default;

  virtual Container container() const = 0;
  virtual std::string_view architecture() const = 0;  // "qwen3", "gpt_oss" or GGUF's own "gpt-oss"
  virtual const Config& config() const = 0;
  // nullopt if there is no such tensor. Error{unsupported} if its type cannot be a weight.
  virtual std::optional<StoredTensor> find(std::string_view name) const = 0;
  virtual std::vector<std::string> names() const = 0;  // sorted
  // A scale for an FP8 KV cache, which is not among the names: no weight depends on it.
  virtual std::optional<StoredTensor> find_cache_scale(std::string_view /*name*/) const {
    return std::nullopt;
  }
  // Who quantized the weights and how, for people: "AWQ", "compressed-tensors pack-quantized"; empty if
  // they are not quantized.
  virtual std::string quantization() const { return {}; }
  // What the files ask for and Inferno does not do, one sentence each.
  virtual std::vector<std::string> notes() const { return {}; }
};

}  // namespace inferno
