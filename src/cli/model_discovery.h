// Which models are on this machine, and which of them a name means. Looks at names and sizes of files only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/environment.h"

namespace inferno {

struct FoundModel {
  std::string name;  // "org/name", "org/name:file" for one of several GGUF files, or a path below a folder
  std::filesystem::path path;  // what open_checkpoint() takes; empty for the built-in model
  std::uint64_t bytes = 0;     // of weights
};

// Where to look, in this order.
struct ModelPlaces {
  std::vector<std::filesystem::path> folders;  // models as subfolders or .gguf files, two levels deep
  std::optional<std::filesystem::path> hub_cache;
};

ModelPlaces model_places(const Environment& environment);

// Sorted by name within each place. A folder that is not there holds none; one that cannot be read is passed
// over.
std::vector<FoundModel> find_models(const ModelPlaces& places);

// A path is taken as it is. Any other name is looked for among `found`: whole, or without its organization,
// where only one model answers to it; case does not matter. Error{not_found} or, when several answer,
// Error{invalid_request}, with the names.
std::filesystem::path resolve_model(const std::string& name, std::span<const FoundModel> found);

// The answer to a numbered list: a number from 1 or a name. nullptr when it is neither.
const FoundModel* chosen_model(std::string_view answer, std::span<const FoundModel> found);

}  // namespace inferno
