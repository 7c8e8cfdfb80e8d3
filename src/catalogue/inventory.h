// Which models are on this machine, whichever program stored them. Only names and sizes of files are read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "hub/cache/scan.h"

namespace inferno {

struct Builtin {};  // the model inside the program, which is unpacked before it is opened

// A path for open_checkpoint(), or the program itself.
using ModelLocation = std::variant<std::filesystem::path, Builtin>;

struct FoundModel {
  std::string name;  // "org/name", "org/name:QUANT", "llama3.2:1b", or a path relative to its folder
  ModelLocation location = {};
  std::uint64_t bytes = 0;  // on disk, each blob counted once
  std::string place = {};   // "hub cache", "folder", "LM Studio", "Ollama" or "built in"
  hub::ModelFormat format = hub::ModelFormat::safetensors;
  std::uint64_t whole_bytes = 0;                // of the complete model; 0 if not known
  std::vector<std::string> missing = {};        // files; a model with missing files is never loaded
  std::int64_t last_use = 0;                    // seconds since 1970; 0 if not known
  std::optional<hub::CachedModel> cached = {};  // for models in a hub cache

  bool is_complete() const { return missing.empty(); }
  bool is_builtin() const { return std::holds_alternative<Builtin>(location); }
  std::filesystem::path path() const {  // empty for the built-in model
    return is_builtin() ? std::filesystem::path() : std::get<std::filesystem::path>(location);
  }
};

// Where to look, in this order.
struct ModelPlaces {
  std::vector<std::filesystem::path> folders = {};  // models as subfolders or .gguf files, two levels deep
  std::vector<std::filesystem::path> hub_caches = {};
  std::vector<std::filesystem::path> lm_studio = {};
  std::vector<std::filesystem::path> ollama = {};
};

struct Inventory {
  std::vector<FoundModel> models;                   // sorted by name within each place; the built-in one last
  std::vector<hub::CachedRepository> repositories;  // of all hub caches, also those without a model
};

// Folders that do not exist or cannot be read are skipped.
Inventory take_inventory(const ModelPlaces& places);

const FoundModel& found_builtin();
FoundModel found_in_cache(hub::CachedModel model);

}  // namespace inferno
