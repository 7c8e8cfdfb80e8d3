#include "catalogue/user_folders.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

namespace inferno {

namespace fs = std::filesystem;

ModelPlaces model_places(const UserFolders& folders) {
  ModelPlaces places = {.folders = folders.models};
  if (folders.hub_cache) places.hub_caches.push_back(*folders.hub_cache);
  // Older versions of llama.cpp keep plain files in their cache, newer ones a hub cache.
  if (folders.llama_cache) {
    places.folders.push_back(*folders.llama_cache);
    if (folders.llama_cache != folders.hub_cache) places.hub_caches.push_back(*folders.llama_cache);
  }
  if (folders.home) {
    places.lm_studio = {*folders.home / ".lmstudio/models", *folders.home / ".cache/lm-studio/models"};
  }
  if (folders.ollama) {
    places.ollama.push_back(*folders.ollama);
  } else if (folders.home) {
    places.ollama.push_back(*folders.home / ".ollama/models");
  }
  return places;
}

std::vector<fs::path> unpack_folders(const UserFolders& folders) {
  std::vector<fs::path> found;
  if (folders.cache) {
    found.push_back(*folders.cache / "inferno");
  } else if (folders.home) {
    found.push_back(*folders.home / ".cache" / "inferno");
  }
  // The user's number keeps users apart: a folder that another user made must not be trusted.
  std::error_code ignored;
  if (fs::is_directory(folders.temporary, ignored)) {
    found.push_back(folders.temporary / fmt::format("inferno-{}", getuid()));
  }
  return found;
}

}  // namespace inferno
