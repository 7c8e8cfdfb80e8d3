// The folders in which programs keep models by convention.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "catalogue/inventory.h"

namespace inferno {

// Of one user; none needs to exist. What is not set is not searched, unless it has a place below `home`.
struct UserFolders {
  std::optional<std::filesystem::path> home = {};
  std::optional<std::filesystem::path> cache = {};        // for unpacked models; ~/.cache
  std::optional<std::filesystem::path> hub_cache = {};    // of Hugging Face's tools
  std::optional<std::filesystem::path> llama_cache = {};  // of llama.cpp
  std::optional<std::filesystem::path> ollama = {};       // ~/.ollama/models
  std::vector<std::filesystem::path> models = {};         // folders of models
  std::filesystem::path temporary = "/tmp";
};

ModelPlaces model_places(const UserFolders& folders);

// Where the built-in model may be unpacked, the preferred folder first.
std::vector<std::filesystem::path> unpack_folders(const UserFolders& folders);

}  // namespace inferno
