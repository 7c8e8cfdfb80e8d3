// For tests: a random checkpoint with single tensors or config keys changed to invalid ones.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "checkpoint/config_json.h"
#include "model/synthetic/random_checkpoint.h"

namespace inferno {

inline constexpr std::string_view tiny_llama_config = R"({
  "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
  "num_key_value_heads": 2, "vocab_size": 50, "rms_norm_eps": 1e-5, "max_position_embeddings": 64})";

class EditedCheckpoint final : public Checkpoint {
 public:
  // Tensors as `original_config` asks for; the config seen by the loader is `config`.
  EditedCheckpoint(std::string_view original_config, std::string_view config, std::string type = "llama")
      : tensors_(
            random_checkpoint(parse_config(original_config, "test"), type, {.dense = WeightFormat::f32})),
        config_(parse_config(config, "test")),
        type_(std::move(type)) {}
  explicit EditedCheckpoint(std::string_view config = tiny_llama_config) : EditedCheckpoint(config, config) {}

  void remove(const std::string& name) { edits_[name] = std::nullopt; }
  void reshape(const std::string& name, std::vector<std::int64_t> shape) {
    StoredTensor tensor = *tensors_->find(name);
    tensor.shape = std::move(shape);
    edits_[name] = tensor;
  }
  void add(const std::string& name) { edits_[name] = *tensors_->find(tensors_->names().front()); }

  Container container() const override { return Container::safetensors; }
  std::string_view architecture() const override { return type_; }
  const Config& config() const override { return config_; }
  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto edit = edits_.find(std::string(name));
    return edit == edits_.end() ? tensors_->find(name) : edit->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> names;
    for (const std::string& name : tensors_->names()) {
      if (find(name)) names.push_back(name);
    }
    for (const auto& [name, tensor] : edits_) {
      if (tensor && !tensors_->find(name)) names.push_back(name);
    }
    return names;
  }

 private:
  std::unique_ptr<Checkpoint> tensors_;
  Config config_;
  std::string type_;
  std::map<std::string, std::optional<StoredTensor>> edits_;
};

}  // namespace inferno
