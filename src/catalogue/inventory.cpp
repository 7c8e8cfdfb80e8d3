#include "catalogue/inventory.h"

#include <algorithm>
#include <system_error>

#include "catalogue/builtin_model.h"
#include "hub/cache/ollama_store.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr int max_depth = 2;
constexpr std::size_t max_entries = 20'000;  // number of entries read from one folder

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
          .location = std::move(stored.path),
          .bytes = stored.bytes,
          .place = std::string(place),
          .format = stored.format,
          .whole_bytes = stored.whole_bytes,
          .missing = std::move(stored.missing),
          .last_use = stored.last_use};
}

// The models of one folder's own files. Weights without a config.json, such as adapters, are not a model.
std::vector<FoundModel> models_in_folder(const fs::path& folder, const std::string& name,
                                         std::string_view place) {
  std::vector<hub::StoredModel> stored = hub::models_in(
      {.folder = folder, .present = hub::files_below(folder, 0), .listing = {}, .bytes_elsewhere = {}});
  std::erase_if(stored, [](const hub::StoredModel& model) {
    const auto& missing = model.missing;
    return std::find(missing.begin(), missing.end(), "config.json") != missing.end();
  });
  if (hub::has_unfinished_download(folder)) {
    for (hub::StoredModel& model : stored) model.missing.push_back("an unfinished download");
  }
  std::vector<FoundModel> found;
  for (hub::StoredModel& model : stored) {
    const bool is_alone = stored.size() == 1 && !name.empty();
    std::string own = model.format != hub::ModelFormat::gguf || is_alone ? name
                      : name.empty()                                     ? model.stem
                                                                         : name + ":" + model.stem;
    // A folder that is itself a model has no relative path to be named by.
    if (own.empty()) own = fs::path(folder / "").parent_path().filename().string();
    found.push_back(found_model(std::move(own), place, std::move(model)));
  }
  return found;
}

void search_folder(const fs::path& folder, const std::string& name, std::string_view place, int depth,
                   std::vector<FoundModel>& found) {
  for (FoundModel& model : models_in_folder(folder, name, place)) found.push_back(std::move(model));
  if (depth == max_depth) return;
  for (const fs::path& entry : folders_in(folder)) {
    const std::string own = entry.filename().string();
    search_folder(entry, depth == 0 ? own : name + "/" + own, place, depth + 1, found);
  }
}

// A repository without a model: a tokenizer alone, or a download that has just begun.
FoundModel found_scraps(const hub::CachedRepository& repository) {
  return {.name = repository.name.text(),
          .location = repository.layout.folder(),
          .bytes = repository.bytes,
          .place = "hub cache",
          .format = hub::ModelFormat::other,
          .missing = {"its weights"},
          .last_use = repository.last_use,
          .cached = hub::CachedModel{repository.name, "", {}, {}}};
}

void search_cache(const fs::path& cache, Inventory& inventory) {
  for (hub::CachedRepository& repository : hub::scan_cache(cache)) {
    if (repository.models.empty() && repository.bytes > 0)
      inventory.models.push_back(found_scraps(repository));
    for (const hub::CachedModel& model : repository.models) inventory.models.push_back(found_in_cache(model));
    inventory.repositories.push_back(std::move(repository));
  }
}

void search_ollama(const fs::path& store, std::vector<FoundModel>& found) {
  for (hub::OllamaModel& model : hub::scan_ollama(store)) {
    const std::string file = model.path.filename().string();
    found.push_back({.name = std::move(model.name),
                     .location = std::move(model.path),
                     .bytes = model.is_complete ? model.bytes : 0,
                     .place = "Ollama",
                     .format = hub::ModelFormat::gguf,
                     .whole_bytes = model.bytes,
                     .missing = model.is_complete ? std::vector<std::string>{} : std::vector{file},
                     .last_use = model.last_use});
  }
}

}  // namespace

const FoundModel& found_builtin() {
  static const FoundModel builtin = [] {
    std::uint64_t bytes = 0;
    for (const EmbeddedFile& file : builtin_files()) bytes += file.bytes.size();
    return FoundModel{.name = std::string(builtin_name),
                      .location = Builtin{},
                      .bytes = bytes,
                      .place = "built in",
                      .whole_bytes = bytes};
  }();
  return builtin;
}

FoundModel found_in_cache(hub::CachedModel model) {
  FoundModel one = found_model(model.name.text(), "hub cache", model.stored);
  one.cached = std::move(model);
  return one;
}

Inventory take_inventory(const ModelPlaces& places) {
  Inventory inventory;
  std::vector<FoundModel>& found = inventory.models;
  const auto add = [&](const std::vector<fs::path>& folders, const auto& search) {
    for (const fs::path& folder : folders) {
      const auto first = static_cast<std::ptrdiff_t>(found.size());
      search(folder);
      std::stable_sort(found.begin() + first, found.end(),
                       [](const FoundModel& a, const FoundModel& b) { return a.name < b.name; });
    }
  };
  add(places.folders, [&](const fs::path& folder) { search_folder(folder, "", "folder", 0, found); });
  add(places.hub_caches, [&](const fs::path& cache) { search_cache(cache, inventory); });
  add(places.lm_studio, [&](const fs::path& folder) { search_folder(folder, "", "LM Studio", 0, found); });
  add(places.ollama, [&](const fs::path& store) { search_ollama(store, found); });
  if (!builtin_files().empty()) found.push_back(found_builtin());
  return inventory;
}

}  // namespace inferno
