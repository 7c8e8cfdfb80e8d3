// Which models are on this machine, whoever put them there. Looks at names and sizes of files only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "cli/environment.h"
#include "hub/cache/scan.h"

namespace inferno {

struct FoundModel {
  std::string name;            // "org/name", "org/name:QUANT", "llama3.2:1b", or a path below a folder
  std::filesystem::path path;  // what open_checkpoint() takes; empty for the built-in model
  std::uint64_t bytes = 0;     // that are here, each blob once
  std::string place = {};      // "hub cache", "folder", "LM Studio", "Ollama" or "built in"
  hub::ModelFormat format = hub::ModelFormat::safetensors;
  std::uint64_t whole_bytes = 0;                // that there should be; 0 when not known
  std::vector<std::string> missing = {};        // files; empty: the model is whole and may be loaded
  std::int64_t last_use = 0;                    // seconds since 1970; 0 when not known
  std::optional<hub::CachedModel> cached = {};  // of models in a hub cache

  bool is_complete() const { return missing.empty(); }
};

// Where to look, in this order.
struct ModelPlaces {
  std::vector<std::filesystem::path> folders = {};  // models as subfolders or .gguf files, two levels deep
  std::vector<std::filesystem::path> hub_caches = {};
  std::vector<std::filesystem::path> lm_studio = {};
  std::vector<std::filesystem::path> ollama = {};
};

ModelPlaces model_places(const Environment& environment);

// Sorted by name within each place. A folder that is not there holds none; one that cannot be read is passed
// over.
std::vector<FoundModel> find_models(const ModelPlaces& places);

FoundModel cached_model(hub::CachedModel model);

// find_models() of the environment's places, and the built-in model last.
std::vector<FoundModel> models_here(const Environment& environment);

}  // namespace inferno
