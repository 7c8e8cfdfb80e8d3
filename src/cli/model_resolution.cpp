#include "cli/model_resolution.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/sizes.h"
#include "cli/builtin_model.h"
#include "cli/hub_environment.h"
#include "cli/model_choice.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

// Without its organization, or "name:Q4_K_M" for the file name-Q4_K_M.gguf.
bool answers_to(const FoundModel& model, const std::string& wanted) {
  const std::string name = lower(model.name);
  if (name == wanted) return true;
  const std::size_t slash = name.rfind('/', name.find(':'));
  if (slash != std::string::npos && name.substr(slash + 1) == wanted) return true;
  const std::size_t colon = wanted.rfind(':');
  if (colon == std::string::npos || colon + 1 == wanted.size()) return false;
  return name.starts_with(wanted.substr(0, colon + 1)) && name.ends_with(wanted.substr(colon + 1));
}

std::vector<std::string> names_of(std::span<const FoundModel* const> models) {
  constexpr std::size_t most = 30;
  std::vector<std::string> names;
  for (const FoundModel* model : models) {
    if (names.size() == most) {
      names.push_back(fmt::format("and {} more", models.size() - most));
      break;
    }
    names.push_back(model->name);
  }
  return names;
}

[[noreturn]] void refuse_several(const std::string& name, std::span<const FoundModel* const> answering) {
  fail(ErrorKind::invalid_request, fmt::format("{}: several models answer to this name", name),
       {.why = fmt::format("they are: {}", fmt::join(names_of(answering), ", ")),
        .next = "give one of these names whole"});
}

// What the hub's cache has under a hub's name: revisions and quantizations are chosen as a download would.
const FoundModel* find_by_hub_name(const std::string& name, std::span<const FoundModel> found) {
  const hub::ParsedName parsed = hub::parse_model_name(name);
  const auto* wanted = std::get_if<hub::ModelName>(&parsed);
  if (wanted == nullptr) return nullptr;
  std::vector<hub::CachedModel> candidates;
  std::vector<const FoundModel*> owners;
  std::set<std::string> ids;
  for (const FoundModel& model : found) {
    if (!model.cached) continue;
    const hub::ModelName& own = model.cached->name;
    const bool answers =
        lower(own.name) == lower(wanted->name) &&
        (wanted->organisation.empty() || lower(own.organisation) == lower(wanted->organisation));
    if (!answers) continue;
    candidates.push_back(*model.cached);
    owners.push_back(&model);
    ids.insert(own.id());
  }
  if (ids.size() > 1) refuse_several(name, owners);
  const hub::CachedModel* chosen = hub::find_cached(candidates, *wanted);
  return chosen == nullptr ? nullptr : owners[static_cast<std::size_t>(chosen - candidates.data())];
}

[[noreturn]] void fail_not_here(const std::string& name, std::span<const FoundModel> found) {
  std::vector<const FoundModel*> all;
  for (const FoundModel& model : found) all.push_back(&model);
  const std::string download = download_command(name);
  fail(
      ErrorKind::not_found, fmt::format("{}: no such directory, file or model", name),
      {.why = all.empty()
                  ? "no models were found in $INFERNO_MODELS, the Hugging Face cache, LM Studio's or Ollama's"
                  : fmt::format("found are: {}", fmt::join(names_of(all), ", ")),
       .next = download.empty()
                   ? "give a model directory, a .gguf file, or one of these names; inferno search finds more"
                   : download});
}

std::string named_missing(const FoundModel& model) {
  std::string text = fmt::format(
      "{}", fmt::join(model.missing.begin(),
                      model.missing.begin() +
                          static_cast<std::ptrdiff_t>(std::min<std::size_t>(3, model.missing.size())),
                      ", "));
  if (model.missing.size() > 3) text += fmt::format(" and {} more files", model.missing.size() - 3);
  return text;
}

}  // namespace

std::string download_command(const std::string& name) {
  const hub::ParsedName parsed = hub::parse_model_name(name);
  const auto* hub_name = std::get_if<hub::ModelName>(&parsed);
  if (hub_name == nullptr || hub_name->organisation.empty()) return "";
  return "inferno download " + hub_name->text();
}

std::string known_name(const std::string& name, const Environment& environment) {
  const std::string endpoint = hub_settings(environment).endpoint;
  if (!name.starts_with(endpoint + "/")) return name;
  return hub::parse_hub_name(name, endpoint).text();
}

const FoundModel* find_model(const std::string& name, std::span<const FoundModel> found) {
  for (const FoundModel& model : found) {
    if (model.name == name) return &model;
  }
  std::vector<const FoundModel*> answering;
  for (const FoundModel& model : found) {
    if (answers_to(model, lower(name))) answering.push_back(&model);
  }
  if (answering.size() == 1) return answering.front();
  if (const FoundModel* model = find_by_hub_name(name, found)) return model;
  if (!answering.empty()) refuse_several(name, answering);
  return nullptr;
}

void require_complete(const FoundModel& model) {
  if (model.is_complete()) return;
  const std::string share =
      model.whole_bytes > 0
          ? fmt::format("{} of {} are here; ", human_size(model.bytes), human_size(model.whole_bytes))
          : "";
  const std::string command = model.cached ? "inferno download " + model.cached->name.text() : "";
  fail(ErrorKind::not_found, fmt::format("{}: only a part of this model is here", model.name),
       {.why = fmt::format("{}missing or not verified: {}", share, named_missing(model)),
        .next = command.empty()
                    ? fmt::format("complete it with the program that put it there ({})", model.place)
                    : command});
}

void require_whole(const fs::path& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  if (whole.extension() == ".incomplete") {
    fail(ErrorKind::not_found, fmt::format("{}: a part of a file, left by a download", path.string()),
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
      if (model.commit == at.filename() && model.stored.path == whole) require_complete(cached_model(model));
    }
    return;
  }
}

const FoundModel& require_model(const std::string& name, std::span<const FoundModel> found) {
  const FoundModel* model = find_model(name, found);
  if (model == nullptr) fail_not_here(name, found);
  require_complete(*model);
  return *model;
}

ResolvedModel resolve_model(const std::string& name, const Environment& environment) {
  std::error_code status;
  if (fs::exists(name, status)) {
    require_whole(name);
    return {name, name};
  }
  if (name == builtin_name) return {name, builtin_model(environment)};
  const std::vector<FoundModel> found = models_here(environment);
  const FoundModel& model = require_model(known_name(name, environment), found);
  return {model.name, model.path.empty() ? builtin_model(environment) : model.path};
}

std::string model_title(const fs::path& path) {
  fs::path whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();
  if (whole.parent_path().filename() == "snapshots") {
    const auto id = hub::id_of_folder(whole.parent_path().parent_path().filename().string());
    if (id) return *id;
  }
  return whole.filename().string();
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
