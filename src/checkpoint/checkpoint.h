// A model on disk: its hyperparameters and its tensors. Two implementations: safetensors.cpp and gguf.cpp.
// Files are untrusted: whatever they claim is checked before it is used or allocated for.
#pragma once

#include <filesystem>
#include <memory>
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
  // nullopt when there is no such tensor. Error{unsupported} when it exists in a type that cannot be a
  // weight.
  virtual std::optional<StoredTensor> find(std::string_view name) const = 0;
  virtual std::vector<std::string> names() const = 0;  // sorted
};

// A file that is named .gguf or begins as one does: some stores name files by their hash.
bool is_gguf_file(const std::filesystem::path& path);

// A model directory (config.json + safetensors, or one .gguf), a single .gguf, or the first file of a split
// one.
std::unique_ptr<Checkpoint> open_checkpoint(const std::filesystem::path& path);

}  // namespace inferno
