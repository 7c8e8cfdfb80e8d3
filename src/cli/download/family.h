// The family of a model on the hub, from a few kilobytes of its files: read before gigabytes are downloaded.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "checkpoint/checkpoint.h"
#include "hub/client.h"
#include "hub/download/model_download.h"

namespace inferno {

struct Family {
  std::string type;  // config.json's "model_type" or "general.architecture"
  Container container = Container::safetensors;
  std::string config = {};  // config.json, if the family was read from it

  bool is_supported() const;
};

// nullopt if the files to download hold no weights, or do not tell the family.
std::optional<Family> family_on_hub(hub::HubClient& client, const hub::ModelPlan& plan);

// "general.architecture" in the first bytes of a GGUF file; empty if they do not hold it.
std::string architecture_in_gguf(std::string_view start);

}  // namespace inferno
