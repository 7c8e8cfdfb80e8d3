// Which files of a model directory hold the weights: one file, or the shards that an index names.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

// model.safetensors.index.json: tensor name to file name. Every file name is a plain one inside the model's
// directory; anything that could lead elsewhere is Error{corrupt}.
std::map<std::string, std::string> parse_safetensors_index(std::string_view json, std::string_view origin);

struct SafetensorsFiles {
  std::vector<std::string> names;            // in the directory, sorted
  std::map<std::string, std::string> index;  // tensor to file; empty if there is only one file
};

// model.safetensors, or the shards in model.safetensors.index.json. Error{not_found} listing missing files,
// Error{corrupt} if the files are ambiguous.
SafetensorsFiles list_safetensors(const std::filesystem::path& directory);

bool has_safetensors(const std::filesystem::path& directory);

}  // namespace inferno
