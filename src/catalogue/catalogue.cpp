#include "catalogue/catalogue.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>

#include "base/error.h"
#include "base/nearest.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "catalogue/builtin_model.h"
#include "hub/names/aliases.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_names = 5, max_choices = 6;  // in a message

// "a, b and 7 more (inferno list)": the names nearest to what was typed.
std::string some_of(const std::vector<std::string>& names, std::string_view typed) {
  const std::vector<std::string> shown = nearest_of(lower_case(typed), names, max_names);
  std::string text = fmt::format("{}", fmt::join(shown, ", "));
  if (shown.size() < names.size())
    text += fmt::format(" and {} more (inferno list)", names.size() - shown.size());
  return text;
}

[[noreturn]] void refuse_several(const std::string& name, std::span<const FoundModel* const> matching) {
  std::vector<std::string> names;
  for (const FoundModel* model : matching) names.push_back(model->name);
  fail(ErrorKind::invalid_request, fmt::format("{}: several models match this name", name),
       {.why = fmt::format("matching models: {}", some_of(names, name)),
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
        lower_case(own.name) == lower_case(wanted->name) &&
        (wanted->organization.empty() || lower_case(own.organization) == lower_case(wanted->organization));
    if (!matches) continue;
    candidates.push_back(*model.cached);
    owners.push_back(&model);
    ids.insert(own.id());
  }
  if (ids.size() > 1) refuse_several(name, owners);
  const hub::CachedModel* chosen = hub::find_cached(candidates, *wanted);
  return chosen == nullptr ? nullptr : owners[static_cast<std::size_t>(chosen - candidates.data())];
}

// "llama3.2:1b (0.8 GB), llama3.2:3b (2.0 GB)": what an incomplete alias may mean, with the sizes of what
// would be fetched here.
std::string choices_for(const std::string& name, std::uint64_t memory) {
  const std::vector<const hub::Alias*> all = hub::aliases_like(name);
  std::string choices;
  for (const hub::Alias* alias : std::span(all).first(std::min(max_choices, all.size()))) {
    const hub::AliasChoice choice = hub::choose(*alias, memory);
    choices += fmt::format("{}{}{}", choices.empty() ? "" : ", ", alias->name,
                           choice.bytes == 0 ? "" : fmt::format(" ({})", human_size(choice.bytes)));
  }
  if (all.size() > max_choices) choices += fmt::format(" and {} more", all.size() - max_choices);
  return choices;
}

std::string digits_of(std::string_view name) {
  std::string digits;
  std::ranges::copy_if(name, std::back_inserter(digits), [](char c) { return c >= '0' && c <= '9'; });
  return digits;
}

// The alias that a misspelled name means. A number tells models apart: llama4 is not a way to spell llama3.
std::string nearest_alias(const std::string& name) {
  std::vector<std::string> names;
  for (const hub::Alias& alias : hub::aliases()) {
    if (digits_of(alias.name) == digits_of(name)) names.push_back(alias.name);
  }
  return nearest(lower_case(name), names);
}

// Another model on this machine that an alias of the same meaning names: qwen3:8b for qwen3.
const FoundModel* find_by_meaning(const hub::Alias& alias, std::span<const FoundModel> found,
                                  const std::string& endpoint) {
  for (const hub::Alias& other : hub::aliases()) {
    if (other.original != alias.original || other.name == alias.name) continue;
    if (const FoundModel* model = find_model(other.name, found, endpoint)) return model;
  }
  return alias.quantized.empty() ? nullptr : find_model(alias.quantized, found, endpoint);
}

[[noreturn]] void refuse_builtin() {
  fail(ErrorKind::invalid_request, "builtin: part of the program, so it cannot be removed or verified",
       {.why = {}, .next = "inferno list shows the models on this machine"});
}

[[noreturn]] void refuse_store(const std::string& name, const std::string& place) {
  fail(ErrorKind::invalid_request, fmt::format("{}: not in the hub cache, but in {}", name, place),
       {.why = "models outside the hub cache are only read", .next = "use the program that stored it"});
}

// Whether `name` is org/name of the repository, with or without a revision and quantization.
bool is_full_name(std::string_view name, const hub::CachedRepository& repository) {
  const std::string id = lower_case(repository.name.id()), given = lower_case(name);
  if (repository.name.organization.empty() || !given.starts_with(id)) return false;
  return given.size() == id.size() || given[id.size()] == '@' || given[id.size()] == ':';
}

std::string missing_files(const FoundModel& model) {
  constexpr std::size_t max_files = 3;
  const std::size_t named = std::min(max_files, model.missing.size()), rest = model.missing.size() - named;
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
  const std::string name = lower_case(model.name), wanted = lower_case(called);
  const auto is_called = [&](std::string_view one) {
    return one == wanted || one == wanted + ":latest";  // a tag may be omitted, as in Ollama
  };
  const std::size_t slash = name.rfind('/', name.find(':'));
  if (is_called(name) || (slash != std::string::npos && is_called(std::string_view(name).substr(slash + 1))))
    return true;
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

std::string download_advice(const std::string& what, bool is_offline) {
  return is_offline ? "use a model that is here (inferno list), or unset HF_HUB_OFFLINE to allow a download"
                    : "inferno download " + what;
}

void require_complete(const FoundModel& model, bool is_offline) {
  if (model.is_complete()) return;
  const std::string share =
      model.whole_bytes > 0
          ? fmt::format("{} of {} are here; ", human_size(model.bytes), human_size(model.whole_bytes))
          : "";
  fail(ErrorKind::not_found, fmt::format("{}: incomplete, some files are missing", model.name),
       {.why = fmt::format("{}missing or not verified: {}", share, missing_files(model)),
        .next = model.cached ? download_advice(model.cached->name.text(), is_offline)
                             : fmt::format("complete it with the program that stored it ({})", model.place)});
}

fs::path folder_of_weights(const fs::path& path) {
  std::error_code ignored;
  if (path.extension() != ".safetensors" || !fs::is_regular_file(path, ignored)) return path;
  const fs::path folder = normal(path).parent_path();
  if (fs::exists(folder / "config.json", ignored)) return folder;
  fail(ErrorKind::unsupported, fmt::format("{}: weights alone", path.string()),
       {.why = "a model also needs config.json and a tokenizer, which are not in this folder",
        .next = "give the folder of the whole model, or a .gguf file"});
}

void require_complete(const fs::path& path, bool is_offline) {
  const fs::path whole = normal(path);
  if (whole.extension() == ".incomplete") {
    fail(ErrorKind::not_found, fmt::format("{}: a partial file of an unfinished download", path.string()),
         {.why = {}, .next = download_advice("MODEL", is_offline)});
  }
  if (hub::has_unfinished_download(whole)) {
    fail(
        ErrorKind::not_found, fmt::format("{}: a download into this folder has not finished", path.string()),
        {.why = {}, .next = download_advice(fmt::format("MODEL --local-dir {}", path.string()), is_offline)});
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
        require_complete(found_in_cache(model), is_offline);
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
  return look_up_stored(name);
}

ModelMatch Catalogue::look_up_stored(const std::string& name) const {
  if (name == builtin_name && !builtin_files().empty()) return {.name = name, .here = &found_builtin()};
  const std::string endpoint = settings_.hub_endpoint();
  ModelMatch match = {.name = name, .here = find_model(name, inventory().models, endpoint)};
  if (const hub::Alias* alias = hub::find_alias(name)) {
    if (match.here == nullptr) match.here = find_by_meaning(*alias, inventory().models, endpoint);
    if (match.here == nullptr) {
      const hub::AliasChoice choice = hub::choose(*alias, settings_.memory());
      match.download = hub::parse_hub_name(choice.model);
      match.download_bytes = choice.bytes;
      return match;
    }
  }
  // Names in other stores need not follow the rules of the hub.
  if (match.here != nullptr && !match.here->cached) return match;
  const hub::ParsedName parsed = hub::parse_model_name(name, endpoint);
  const auto* hub_name = std::get_if<hub::ModelName>(&parsed);
  if (match.here != nullptr) {
    match.download = match.here->cached->name;
  } else if (hub_name != nullptr && !hub_name->organization.empty()) {
    // The hub has no model without an organization, a few old ones aside.
    match.download = *hub_name;
  }
  return match;
}

ResolvedModel Catalogue::resolve(const std::string& name) const {
  const ModelMatch match = look_up(name);
  if (match.path) {
    require_complete(*match.path, settings_.is_offline());
    return {name_of_path(*match.path), *match.path};
  }
  if (match.here == nullptr) fail_not_here(match);
  return resolve(*match.here);
}

void Catalogue::fail_not_here(const ModelMatch& match) const {
  const std::string& name = match.name;
  if (name == builtin_name) fail_without_builtin();
  std::vector<std::string> names;
  for (const FoundModel& model : inventory().models) names.push_back(model.name);
  const std::string unsupported = hub::unsupported_family(name);
  const auto next = [&]() -> std::string {
    if (match.download) return download_advice(match.download->text());
    if (settings_.is_offline()) return download_advice(name);
    if (!unsupported.empty()) return "inferno search NAME --fits lists models that run here";
    if (const std::string choices = choices_for(name, settings_.memory()); !choices.empty())
      return "choose one of these: " + choices;
    if (const std::string meant = nearest_alias(name); !meant.empty())
      return fmt::format("did you mean {}? inferno search finds more models", meant);
    return "give org/name, a model directory, a .gguf file, or a name from here; inferno search finds more";
  };
  fail(ErrorKind::not_found, fmt::format("{}: no such directory, file or model", name),
       {.why = !unsupported.empty() ? fmt::format("Inferno cannot run models of the family {}", unsupported)
               : names.empty()      ? "there are no models here"
                                    : fmt::format("models here: {}", some_of(names, name)),
        .next = next()});
}

hub::ModelName Catalogue::to_download(const std::string& name) const {
  if (const hub::Alias* alias = hub::find_alias(name))
    return hub::parse_hub_name(hub::choose(*alias, settings_.memory()).model);
  // The hub has no model without an organization, a few old ones aside, which hf.co/name means.
  if (name != builtin_name) {
    hub::ModelName wanted = hub::parse_hub_name(name, settings_.hub_endpoint());
    if (name.find('/') != std::string::npos) return wanted;
  }
  const ModelMatch match = look_up_stored(name);
  if (match.download) return *match.download;
  if (match.here == nullptr) fail_not_here(match);
  fail(ErrorKind::invalid_request,
       fmt::format("{}: {}, so there is nothing to download", name,
                   match.here->is_builtin() ? "part of the program" : "on this machine already"),
       {.why = {}, .next = "inferno play " + name});
}

std::string Catalogue::download_advice(const std::string& what) const {
  return inferno::download_advice(what, settings_.is_offline());
}

ResolvedModel Catalogue::resolve(const FoundModel& model) const {
  if (!model.is_complete()) require_complete(model, settings_.is_offline());
  if (!model.is_builtin()) return {model.name, model.path()};
  return {model.name, unpack_model(builtin_files(), settings_.unpack_folders)};
}

ResolvedModel Catalogue::builtin() const {
  const ModelMatch match = look_up_stored(std::string(builtin_name));
  if (match.here == nullptr) fail_not_here(match);
  return resolve(*match.here);
}

CachedMatch Catalogue::cached(const std::string& name) const {
  const FoundModel* here = look_up_stored(name).here;
  if (here != nullptr && here->is_builtin()) refuse_builtin();
  const bool is_elsewhere = here != nullptr && !here->cached;
  const bool is_in_both =
      is_elsewhere && std::ranges::any_of(inventory().repositories,
                                          [&](const auto& each) { return is_full_name(name, each); });
  if (is_elsewhere && !is_in_both) refuse_store(name, here->place);
  hub::ParsedName parsed = hub::parse_model_name(name, settings_.hub_endpoint());
  if (!std::holds_alternative<hub::ModelName>(parsed)) refuse_store(name, "a path");
  hub::ModelName wanted = std::get<hub::ModelName>(std::move(parsed));
  if (here != nullptr && here->cached) wanted.organization = here->cached->name.organization;
  for (const hub::CachedRepository& repository : inventory().repositories) {
    if (lower_case(repository.name.id()) == lower_case(wanted.id())) return {repository, std::move(wanted)};
  }
  fail(ErrorKind::not_found, fmt::format("{}: not in the hub cache", wanted.text()),
       {.why = {}, .next = "inferno list shows the models on this machine"});
}

}  // namespace inferno
