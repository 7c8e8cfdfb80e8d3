#include "cli/model_discovery.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <fstream>
#include <map>
#include <system_error>

#include "base/error.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr int deepest = 2;
constexpr std::size_t most_entries = 20'000;  // of one folder; nobody chooses from more

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code status;
  for (fs::directory_iterator at(folder, status), end; !status && at != end; at.increment(status)) {
    entries.push_back(at->path());
    if (entries.size() == most_entries) break;
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::uint64_t size_of(const fs::path& file) {
  std::error_code status;
  const std::uintmax_t size = fs::file_size(file, status);
  return status ? 0 : size;
}

bool is_folder(const fs::path& path) {
  std::error_code status;
  return fs::is_directory(path, status);
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

// Files beside a model that are GGUF and no model: projectors, importance matrices, draft heads.
bool is_companion(const std::string& name) {
  const std::string small = lower(name);
  return small.find("mmproj") != std::string::npos || small.find("imatrix") != std::string::npos ||
         small.starts_with("mtp-");
}

// "x-00002-of-00003" to {"x", 2}; {stem, 1} for a model in one file.
std::pair<std::string, int> split_part(const std::string& stem) {
  constexpr std::size_t length = std::string_view("-00001-of-00003").size();
  if (stem.size() <= length || stem.substr(stem.size() - 9, 4) != "-of-") return {stem, 1};
  int part = 1;
  const char* digits = stem.data() + stem.size() - length + 1;
  const auto [end, problem] = std::from_chars(digits, digits + 5, part);
  if (problem != std::errc() || end != digits + 5) return {stem, 1};
  return {stem.substr(0, stem.size() - length), part};
}

// The models of one folder's own files.
std::vector<FoundModel> models_in(const fs::path& folder, const std::string& name) {
  std::map<std::string, FoundModel> gguf;
  std::uint64_t weights = 0;
  bool has_config = false;
  for (const fs::path& file : entries_of(folder)) {
    if (file.filename() == "config.json") has_config = true;
    if (file.extension() == ".safetensors") weights += size_of(file);
    if (file.extension() != ".gguf" || is_companion(file.filename().string())) continue;
    const auto [stem, part] = split_part(file.stem().string());
    FoundModel& model = gguf[stem];
    if (part == 1) model.path = file;
    model.bytes += size_of(file);
  }
  std::vector<FoundModel> found;
  if (has_config && weights > 0) found.push_back({name, folder, weights});
  for (auto& [stem, model] : gguf) {
    if (model.path.empty()) continue;  // parts without their first
    const bool alone = gguf.size() == 1 && found.empty() && !name.empty();
    found.push_back({alone ? name : name.empty() ? stem : name + ":" + stem, model.path, model.bytes});
  }
  return found;
}

void search_folder(const fs::path& folder, const std::string& name, int depth,
                   std::vector<FoundModel>& found) {
  const bool is_root = depth == 0;
  for (FoundModel& model : models_in(folder, name)) {
    // The folder itself may be a model: then it has no name below itself.
    if (model.name.empty()) model.name = fs::path(folder / "").parent_path().filename().string();
    found.push_back(std::move(model));
  }
  if (depth == deepest) return;
  for (const fs::path& entry : entries_of(folder)) {
    const std::string own = entry.filename().string();
    if (own.starts_with(".") || own.starts_with("models--") || !is_folder(entry)) continue;
    search_folder(entry, is_root ? own : name + "/" + own, depth + 1, found);
  }
}

// refs/main where there is one; some tools write none, then the newest.
std::optional<fs::path> snapshot_of(const fs::path& repository) {
  std::ifstream reference(repository / "refs" / "main");
  std::string commit;
  if (std::getline(reference, commit) && !commit.empty() && commit.find('/') == std::string::npos &&
      commit != ".." && is_folder(repository / "snapshots" / commit)) {
    return repository / "snapshots" / commit;
  }
  std::optional<fs::path> newest;
  fs::file_time_type newest_time;
  for (const fs::path& snapshot : entries_of(repository / "snapshots")) {
    std::error_code status;
    const fs::file_time_type time = fs::last_write_time(snapshot, status);
    if (status || (newest && time <= newest_time)) continue;
    newest = snapshot;
    newest_time = time;
  }
  return newest;
}

void search_cache(const fs::path& cache, std::vector<FoundModel>& found) {
  constexpr std::string_view prefix = "models--";
  for (const fs::path& repository : entries_of(cache)) {
    std::string name = repository.filename().string();
    if (!name.starts_with(prefix)) continue;
    name.erase(0, prefix.size());
    if (const std::size_t border = name.find("--"); border != std::string::npos) name.replace(border, 2, "/");
    const auto snapshot = snapshot_of(repository);
    if (!snapshot) continue;
    for (FoundModel& model : models_in(*snapshot, name)) found.push_back(std::move(model));
  }
}

bool answers_to(const FoundModel& model, const std::string& wanted) {
  const std::string name = lower(model.name);
  if (name == wanted) return true;
  const std::size_t slash = name.rfind('/', name.find(':'));
  if (slash != std::string::npos && name.substr(slash + 1) == wanted) return true;
  // org/name:Q4_K_M for the file org-name-Q4_K_M.gguf
  const std::size_t colon = wanted.rfind(':');
  if (colon == std::string::npos || colon + 1 == wanted.size()) return false;
  return name.starts_with(wanted.substr(0, colon + 1)) && name.ends_with(wanted.substr(colon + 1));
}

}  // namespace

ModelPlaces model_places(const Environment& environment) {
  ModelPlaces places = {.folders = environment.model_folders(), .hub_cache = {}};
  if (const auto cache = environment.hub_cache()) places.hub_cache = cache->path;
  return places;
}

std::vector<FoundModel> find_models(const ModelPlaces& places) {
  std::vector<FoundModel> found;
  const auto by_name = [](const FoundModel& a, const FoundModel& b) { return a.name < b.name; };
  for (const fs::path& folder : places.folders) {
    const auto first = static_cast<std::ptrdiff_t>(found.size());
    search_folder(folder, "", 0, found);
    std::stable_sort(found.begin() + first, found.end(), by_name);
  }
  const auto first = static_cast<std::ptrdiff_t>(found.size());
  if (places.hub_cache) search_cache(*places.hub_cache, found);
  std::stable_sort(found.begin() + first, found.end(), by_name);
  return found;
}

fs::path resolve_model(const std::string& name, std::span<const FoundModel> found) {
  std::error_code status;
  if (fs::exists(name, status)) return name;
  std::vector<const FoundModel*> answering;
  for (const FoundModel& model : found) {
    if (answers_to(model, lower(name))) answering.push_back(&model);
    if (model.name == name) return model.path;
  }
  if (answering.size() == 1) return answering.front()->path;
  std::vector<std::string_view> names;
  if (answering.empty()) {
    for (const FoundModel& model : found) names.push_back(model.name);
    fail(ErrorKind::not_found, fmt::format("{}: no such directory, file or model", name),
         {.why = names.empty() ? "no models were found in $INFERNO_MODELS and the Hugging Face cache"
                               : fmt::format("found are: {}", fmt::join(names, ", ")),
          .next = "give a model directory, a .gguf file, or one of these names"});
  }
  for (const FoundModel* model : answering) names.push_back(model->name);
  fail(ErrorKind::invalid_request, fmt::format("{}: several models answer to this name", name),
       {.why = fmt::format("they are: {}", fmt::join(names, ", ")), .next = "give one of these names whole"});
}

const FoundModel* chosen_model(std::string_view answer, std::span<const FoundModel> found) {
  const std::size_t begin = answer.find_first_not_of(" \t"), end = answer.find_last_not_of(" \t");
  if (begin == std::string_view::npos) return nullptr;
  answer = answer.substr(begin, end - begin + 1);
  std::size_t number = 0;
  const auto [stop, problem] = std::from_chars(answer.data(), answer.data() + answer.size(), number);
  if (problem == std::errc() && stop == answer.data() + answer.size()) {
    return number >= 1 && number <= found.size() ? &found[number - 1] : nullptr;
  }
  const FoundModel* only = nullptr;
  for (const FoundModel& model : found) {
    if (model.name == answer) return &model;
    if (!answers_to(model, lower(answer))) continue;
    if (only != nullptr) return nullptr;
    only = &model;
  }
  return only;
}

}  // namespace inferno
