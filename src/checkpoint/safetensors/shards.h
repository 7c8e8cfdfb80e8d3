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
  std::vector<std::string> names;            // inside the directory, sorted
  std::map<std::string, std::string> index;  // tensor to file; empty when there is only one file
};

// model.safetensors, or the shards that model.safetensors.index.json names. Error{not_found} listing what is
// missing, Error{corrupt} when there is more than one answer.
SafetensorsFiles list_safetensors(const std::filesystem::path& directory);

bool has_safetensors(const std::filesystem::path& directory);

}  // namespace inferno
