#include "cli/model_discovery.h"

#include <algorithm>
#include <system_error>

#include "cli/builtin_model.h"
#include "hub/cache/ollama_store.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr int deepest = 2;
constexpr std::size_t max_entries = 20'000;  // of one folder; nobody chooses from more

std::vector<fs::path> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code status;
  for (fs::directory_iterator at(folder, status), end; !status && at != end; at.increment(status)) {
    const std::string name = at->path().filename().string();
    std::error_code unreadable;
    if (name.starts_with(".") || name.starts_with("models--") || !at->is_directory(unreadable)) continue;
    folders.push_back(at->path());
    if (folders.size() == max_entries) break;
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

FoundModel found_model(std::string name, std::string_view place, hub::StoredModel stored) {
  return {.name = std::move(name),
          .path = std::move(stored.path),
          .bytes = stored.bytes,
          .place = std::string(place),
          .format = stored.format,
          .whole_bytes = stored.whole_bytes,
          .missing = std::move(stored.missing),
          .last_use = stored.last_use};
}

// The models of one folder's own files. Weights without a config.json are not a model here: adapters, say.
std::vector<FoundModel> models_in_folder(const fs::path& folder, const std::string& name,
                                         std::string_view place) {
  std::vector<hub::StoredModel> stored = hub::models_in(
      {.folder = folder, .present = hub::files_below(folder, 0), .listing = {}, .bytes_elsewhere = {}});
  std::erase_if(stored, [](const hub::StoredModel& model) {
    const auto& missing = model.missing;
    return std::find(missing.begin(), missing.end(), "config.json") != missing.end();
  });
  if (hub::has_unfinished_download(folder)) {
    for (hub::StoredModel& model : stored) model.missing.push_back("what a download has not finished");
  }
  std::vector<FoundModel> found;
  for (hub::StoredModel& model : stored) {
    const bool is_alone = stored.size() == 1 && !name.empty();
    std::string own = model.format != hub::ModelFormat::gguf || is_alone ? name
                      : name.empty()                                     ? model.stem
                                                                         : name + ":" + model.stem;
    // The folder itself may be a model: then it has no name below itself.
    if (own.empty()) own = fs::path(folder / "").parent_path().filename().string();
    found.push_back(found_model(std::move(own), place, std::move(model)));
  }
  return found;
}

void search_folder(const fs::path& folder, const std::string& name, std::string_view place, int depth,
                   std::vector<FoundModel>& found) {
  for (FoundModel& model : models_in_folder(folder, name, place)) found.push_back(std::move(model));
  if (depth == deepest) return;
  for (const fs::path& entry : folders_in(folder)) {
    const std::string own = entry.filename().string();
    search_folder(entry, depth == 0 ? own : name + "/" + own, place, depth + 1, found);
  }
}

void search_cache(const fs::path& cache, std::vector<FoundModel>& found) {
  for (hub::CachedRepository& repository : hub::scan_cache(cache)) {
    if (repository.models.empty() &&
        repository.bytes > 0) {  // a tokenizer alone, say, or a download just begun
      FoundModel scraps = {.name = repository.name.text(), .path = {}, .bytes = repository.bytes};
      scraps.path = repository.layout.folder();
      scraps.place = "hub cache";
      scraps.format = hub::ModelFormat::other;
      scraps.missing = {"its weights"};
      scraps.last_use = repository.last_use;
      scraps.cached = hub::CachedModel{repository.name, "", {}, {}};
      found.push_back(std::move(scraps));
    }
    for (hub::CachedModel& model : repository.models) found.push_back(cached_model(std::move(model)));
  }
}

void search_ollama(const fs::path& store, std::vector<FoundModel>& found) {
  for (hub::OllamaModel& model : hub::scan_ollama(store)) {
    FoundModel one = {.name = std::move(model.name), .path = std::move(model.path), .bytes = model.bytes};
    one.place = "Ollama";
    one.format = hub::ModelFormat::gguf;
    one.whole_bytes = model.bytes;
    one.last_use = model.last_use;
    if (!model.is_complete) {
      one.missing = {one.path.filename().string()};
      one.bytes = 0;
    }
    found.push_back(std::move(one));
  }
}

}  // namespace

FoundModel cached_model(hub::CachedModel model) {
  FoundModel one = found_model(model.name.text(), "hub cache", model.stored);
  one.cached = std::move(model);
  return one;
}

ModelPlaces model_places(const Environment& environment) {
  ModelPlaces places = {.folders = environment.model_folders()};
  if (const auto cache = environment.hub_cache()) places.hub_caches.push_back(cache->path);
  // llama.cpp keeps files side by side in older versions and the hub's layout in newer ones.
  if (const auto cache = environment.get("LLAMA_CACHE")) {
    const fs::path folder = environment.expanded(*cache);
    places.folders.push_back(folder);
    if (places.hub_caches.empty() || places.hub_caches.front() != folder) places.hub_caches.push_back(folder);
  }
  const auto home = environment.home();
  if (home) {
    places.lm_studio = {fs::path(*home) / ".lmstudio/models", fs::path(*home) / ".cache/lm-studio/models"};
  }
  if (const auto store = environment.get("OLLAMA_MODELS")) {
    places.ollama.emplace_back(environment.expanded(*store));
  } else if (home) {
    places.ollama.push_back(fs::path(*home) / ".ollama/models");
  }
  return places;
}

std::vector<FoundModel> find_models(const ModelPlaces& places) {
  std::vector<FoundModel> found;
  const auto add = [&](const std::vector<fs::path>& folders, const auto& search) {
    for (const fs::path& folder : folders) {
      const auto first = static_cast<std::ptrdiff_t>(found.size());
      search(folder);
      std::stable_sort(found.begin() + first, found.end(),
                       [](const FoundModel& a, const FoundModel& b) { return a.name < b.name; });
    }
  };
  add(places.folders, [&](const fs::path& folder) { search_folder(folder, "", "folder", 0, found); });
  add(places.hub_caches, [&](const fs::path& cache) { search_cache(cache, found); });
  add(places.lm_studio, [&](const fs::path& folder) { search_folder(folder, "", "LM Studio", 0, found); });
  add(places.ollama, [&](const fs::path& store) { search_ollama(store, found); });
  return found;
}

std::vector<FoundModel> models_here(const Environment& environment) {
  std::vector<FoundModel> found = find_models(model_places(environment));
  FoundModel builtin = {.name = std::string(builtin_name), .path = {}, .bytes = 0, .place = "built in"};
  for (const EmbeddedFile& file : builtin_files()) builtin.bytes += file.bytes.size();
  builtin.whole_bytes = builtin.bytes;
  found.push_back(std::move(builtin));
  return found;
}

}  // namespace inferno
