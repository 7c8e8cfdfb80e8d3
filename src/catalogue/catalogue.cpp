#include "catalogue/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/sizes.h"
#include "catalogue/builtin_model.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

std::vector<std::string> names_of(std::span<const FoundModel* const> models) {
  constexpr std::size_t max_names = 30;
  std::vector<std::string> names;
  for (const FoundModel* model : models) {
    if (names.size() == max_names) {
      names.push_back(fmt::format("and {} more", models.size() - max_names));
      break;
    }
    names.push_back(model->name);
  }
  return names;
}

[[noreturn]] void refuse_several(const std::string& name, std::span<const FoundModel* const> matching) {
  fail(ErrorKind::invalid_request, fmt::format("{}: several models match this name", name),
       {.why = fmt::format("matching models: {}", fmt::join(names_of(matching), ", ")),
        .next = "use one of these full names"});
}

// Revisions and quantizations of a hub name are chosen as a download would choose them.
const FoundModel* find_by_hub_name(const std::string& name, std::span<const FoundModel> found,
                                   std::string_view endpoint) {
  const hub::ParsedName parsed = hub::parse_model_name(name, endpoint);
  const auto* wanted = std::get_if<hub::ModelName>(&parsed);
  if (wanted == nullptr) return nullptr;
  std::vector<hub::CachedModel> candidates;
  std::vector<const FoundModel*> owners;
  std::set<std::string> ids;
  for (const FoundModel& model : found) {
    if (!model.cached) continue;
    const hub::ModelName& own = model.cached->name;
    const bool matches =
        lower(own.name) == lower(wanted->name) &&
        (wanted->organisation.empty() || lower(own.organisation) == lower(wanted->organisation));
    if (!matches) continue;
    candidates.push_back(*model.cached);
    owners.push_back(&model);
    ids.insert(own.id());
  }
  if (ids.size() > 1) refuse_several(name, owners);
  const hub::CachedModel* chosen = hub::find_cached(candidates, *wanted);
  return chosen == nullptr ? nullptr : owners[static_cast<std::size_t>(chosen - candidates.data())];
}

[[noreturn]] void fail_not_here(const std::string& name, std::span<const FoundModel> found,
                                const std::optional<hub::ModelName>& download) {
  std::vector<const FoundModel*> all;
  for (const FoundModel& model : found) all.push_back(&model);
  fail(ErrorKind::not_found, fmt::format("{}: no such directory, file or model", name),
       {.why = fmt::format("models here: {}", fmt::join(names_of(all), ", ")),
        .next =
            download
                ? "inferno download " + download->text()
                : "give a model directory, a .gguf file, or one of these names; inferno search finds more"});
}

[[noreturn]] void refuse_store(const std::string& name, const std::string& place) {
  fail(ErrorKind::unsupported, fmt::format("{}: not in the hub cache, but in {}", name, place),
       {.why = "models outside the hub cache are only read", .next = "use the program that stored it"});
}

std::string missing_files(const FoundModel& model) {
  constexpr std::size_t max_names = 3;
  const std::size_t named = std::min(max_names, model.missing.size()), rest = model.missing.size() - named;
  std::string text = fmt::format("{}", fmt::join(std::span(model.missing).first(named), ", "));
  if (rest > 0) text += fmt::format(" and {} more {}", rest, rest == 1 ? "file" : "files");
  return text;
}

fs::path normal(const fs::path& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  return whole.has_filename() ? whole : whole.parent_path();
}

// "org/name" for a snapshot of a hub cache, .../models--org--name/snapshots/<commit>; else the path as given.
std::string name_of_path(const fs::path& path) {
  const fs::path folder = normal(path).parent_path();
  if (folder.filename() != "snapshots") return path.string();
  return hub::id_of_folder(folder.parent_path().filename().string()).value_or(path.string());
}

}  // namespace

bool answers_to(const FoundModel& model, std::string_view called) {
  const std::string name = lower(model.name), wanted = lower(called);
  if (name == wanted) return true;
  const std::size_t slash = name.rfind('/', name.find(':'));
  if (slash != std::string::npos && name.substr(slash + 1) == wanted) return true;
  // "name:Q4_K_M" for the file name-Q4_K_M.gguf.
  const std::size_t colon = wanted.rfind(':');
  if (colon == std::string::npos || colon + 1 == wanted.size()) return false;
  return name.starts_with(wanted.substr(0, colon + 1)) && name.ends_with(wanted.substr(colon + 1));
}

const FoundModel* find_model(const std::string& name, std::span<const FoundModel> found,
                             std::string_view hub_endpoint) {
  for (const FoundModel& model : found) {
    if (model.name == name) return &model;
  }
  std::vector<const FoundModel*> matching;
  for (const FoundModel& model : found) {
    if (answers_to(model, name)) matching.push_back(&model);
  }
  if (matching.size() == 1) return matching.front();
  if (const FoundModel* model = find_by_hub_name(name, found, hub_endpoint)) return model;
  if (!matching.empty()) refuse_several(name, matching);
  return nullptr;
}

void require_complete(const FoundModel& model) {
  if (model.is_complete()) return;
  const std::string share =
      model.whole_bytes > 0
          ? fmt::format("{} of {} are here; ", human_size(model.bytes), human_size(model.whole_bytes))
          : "";
  fail(ErrorKind::not_found, fmt::format("{}: incomplete, some files are missing", model.name),
       {.why = fmt::format("{}missing or not verified: {}", share, missing_files(model)),
        .next = model.cached ? "inferno download " + model.cached->name.text()
                             : fmt::format("complete it with the program that stored it ({})", model.place)});
}

void require_complete(const fs::path& path) {
  const fs::path whole = normal(path);
  if (whole.extension() == ".incomplete") {
    fail(ErrorKind::not_found, fmt::format("{}: a partial file of an unfinished download", path.string()),
         {.why = {}, .next = "run the download again, and give the model's name"});
  }
  if (hub::has_unfinished_download(whole)) {
    fail(ErrorKind::not_found, fmt::format("{}: a download into this folder has not finished", path.string()),
         {.why = {}, .next = fmt::format("inferno download MODEL --local-dir {}", path.string())});
  }
  // .../models--org--name/snapshots/<commit>/...
  for (fs::path at = whole; at.has_relative_path(); at = at.parent_path()) {
    const fs::path repository = at.parent_path().parent_path();
    if (at.parent_path().filename() != "snapshots" || !hub::id_of_folder(repository.filename().string()))
      continue;
    const auto scanned = hub::scan_repository(repository.parent_path(), repository.filename().string());
    if (!scanned) return;
    for (const hub::CachedModel& model : scanned->models) {
      if (model.commit == at.filename() && model.stored.path == whole)
        require_complete(found_in_cache(model));
    }
    return;
  }
}

const Inventory& Catalogue::inventory() const {
  if (!inventory_) inventory_ = take_inventory(settings_.places);
  return *inventory_;
}

ModelMatch Catalogue::look_up(const std::string& name) const {
  std::error_code ignored;
  if (fs::exists(name, ignored)) return {.name = name, .path = name};
  if (name == builtin_name) return {.name = name, .here = &found_builtin()};
  const std::string endpoint = settings_.hub_endpoint();
  ModelMatch match = {.name = name, .here = find_model(name, inventory().models, endpoint)};
  // Names in other stores need not follow the rules of the hub.
  if (match.here != nullptr && !match.here->cached) return match;
  const hub::ParsedName parsed = hub::parse_model_name(name, endpoint);
  if (const auto* hub_name = std::get_if<hub::ModelName>(&parsed)) match.hub_name = *hub_name;
  if (match.here != nullptr) {
    match.download = match.here->cached->name;
  } else if (match.hub_name && !match.hub_name->organisation.empty()) {
    // The hub has no model without an organization, a few old ones aside.
    match.download = match.hub_name;
  }
  return match;
}

ResolvedModel Catalogue::resolve(const std::string& name) const {
  const ModelMatch match = look_up(name);
  if (match.path) {
    require_complete(*match.path);
    return {name_of_path(*match.path), *match.path};
  }
  if (match.here == nullptr) fail_not_here(name, inventory().models, match.download);
  return resolve(*match.here);
}

ResolvedModel Catalogue::resolve(const FoundModel& model) const {
  require_complete(model);
  return model.is_builtin() ? builtin() : ResolvedModel{model.name, model.path()};
}

ResolvedModel Catalogue::builtin() const {
  return {std::string(builtin_name), unpack_model(builtin_files(), settings_.unpack_folders)};
}

CachedMatch Catalogue::cached(const ModelMatch& match) const {
  if (match.here != nullptr && !match.here->cached) refuse_store(match.name, match.here->place);
  if (!match.hub_name) refuse_store(match.name, "a path");
  hub::ModelName wanted = *match.hub_name;
  if (match.here != nullptr) wanted.organisation = match.here->cached->name.organisation;
  for (const hub::CachedRepository& repository : inventory().repositories) {
    if (lower(repository.name.id()) == lower(wanted.id())) return {repository, std::move(wanted)};
  }
  fail(ErrorKind::not_found, fmt::format("{}: not in the hub cache", wanted.text()),
       {.why = {}, .next = "inferno list shows the models on this machine"});
}

}  // namespace inferno
