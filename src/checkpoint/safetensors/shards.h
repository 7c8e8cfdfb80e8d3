// Which files of a directory hold the weights.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace inferno {

struct SafetensorsFiles {
  std::vector<std::string> names;            // inside the directory, sorted
  std::map<std::string, std::string> index;  // tensor to file; empty when there is only one file
};

// model.safetensors, or the shards that model.safetensors.index.json names. Error{not_found} listing what is
// missing, Error{corrupt} when there is more than one answer.
SafetensorsFiles list_safetensors(const std::filesystem::path& directory);

bool has_safetensors(const std::filesystem::path& directory);

}  // namespace inferno
