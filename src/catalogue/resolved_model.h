// A model that can be loaded: what the catalogue makes of a name, and what the service needs to open it.
#pragma once

#include <filesystem>
#include <string>

namespace inferno {

struct ResolvedModel {
  std::string name;            // for people
  std::filesystem::path path;  // complete, for ModelFiles and open_checkpoint()
};

}  // namespace inferno
