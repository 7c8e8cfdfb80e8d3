#include "cli/environment.h"

#include <fmt/format.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/system_memory.h"
#include "catalogue/user_folders.h"
#include "cli/version.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::array variables = {
    HonouredVariable{"HF_HUB_CACHE", "folder of the model cache"},
    HonouredVariable{"HUGGINGFACE_HUB_CACHE", "the same, by its older name"},
    HonouredVariable{"HF_HOME", "folder that holds the cache as hub/"},
    HonouredVariable{"XDG_CACHE_HOME", "folder that holds huggingface/hub/"},
    HonouredVariable{"HF_ENDPOINT", "address of the hub"},
    HonouredVariable{"HF_HUB_OFFLINE", "1: the hub is not contacted"},
    HonouredVariable{"INFERNO_API_KEY_FILE", "a file with such keys, one per line"},
    HonouredVariable{"INFERNO_CONFIG", "the configuration file; empty: none"},
    HonouredVariable{"INFERNO_MODELS", "additional folders with models, separated by colons"},
    HonouredVariable{"LLAMA_CACHE", "llama.cpp's cache, also searched for models"},
    HonouredVariable{"OLLAMA_MODELS", "folder of Ollama's models"},
    HonouredVariable{"XDG_CONFIG_HOME", "folder that holds inferno/config.toml"},
    HonouredVariable{"XDG_STATE_HOME", "folder that holds inferno/history"},
    HonouredVariable{"TMPDIR", "folder for temporary files"},
    HonouredVariable{"VISUAL", "the editor that /edit in play opens; else EDITOR"},
    HonouredVariable{"NO_COLOR", "no colours"},
    HonouredVariable{"CLICOLOR_FORCE", "colours even into a pipe"},
    HonouredVariable{"TERM", "dumb: no colours and no line editing"},
    HonouredVariable{"LC_ALL", "C: progress in ASCII; likewise LC_CTYPE and LANG"},
    HonouredVariable{"CUDA_VISIBLE_DEVICES", "which GPUs the driver shows"},
};

bool is_name_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

// The variable that begins at text[at] == '$': its name, and how many characters it takes with its brackets.
struct Reference {
  std::string_view name;
  std::size_t length = 0;
};

std::optional<Reference> reference_at(std::string_view text, std::size_t at) {
  const bool braced = at + 1 < text.size() && text[at + 1] == '{';
  const std::size_t begin = at + (braced ? 2 : 1);
  std::size_t end = begin;
  while (end < text.size() && (braced ? text[end] != '}' : is_name_letter(text[end]))) ++end;
  if (end == begin || (braced && end == text.size())) return std::nullopt;
  return Reference{text.substr(begin, end - begin), end - at + (braced ? 1 : 0)};
}

UserFolders user_folders(const Environment& environment) {
  const auto folder = [&](std::string_view name) -> std::optional<fs::path> {
    const auto value = environment.get(name);
    return value ? std::optional<fs::path>(environment.expanded(*value)) : std::nullopt;
  };
  const auto cache = environment.hub_cache();
  const auto unpacks = environment.get("XDG_CACHE_HOME");
  return {.home = environment.home(),
          .cache = unpacks ? std::optional<fs::path>(*unpacks) : std::nullopt,
          .hub_cache = cache ? std::optional(cache->path) : std::nullopt,
          .llama_cache = folder("LLAMA_CACHE"),
          .ollama = folder("OLLAMA_MODELS"),
          .models = environment.model_folders(),
          .temporary = environment.temporary_folder()};
}

}  // namespace

Environment Environment::of_process() {
  Values values;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) values.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  const passwd* user = getpwuid(getuid());
  const bool known = user != nullptr && user->pw_dir != nullptr && *user->pw_dir != '\0';
  return {std::move(values), known ? std::optional<std::string>(user->pw_dir) : std::nullopt};
}

Environment::Environment(Values values, std::optional<std::string> home)
    : values_(std::move(values)), home_(std::move(home)) {}

std::optional<std::string> Environment::get(std::string_view name) const {
  const auto found = values_.find(name);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second;
}

std::optional<std::string> Environment::home() const {
  auto set = get("HOME");
  // A relative path would mean another folder in each working directory.
  return set && set->starts_with('/') ? set : home_;
}

std::optional<CacheFolder> Environment::hub_cache() const {
  for (const std::string name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"}) {
    if (const auto folder = get(name)) return CacheFolder{expanded(*folder), name};
  }
  if (const auto folder = get("HF_HOME")) return CacheFolder{fs::path(expanded(*folder)) / "hub", "HF_HOME"};
  if (const auto folder = get("XDG_CACHE_HOME")) {
    return CacheFolder{fs::path(expanded(*folder)) / "huggingface/hub", "XDG_CACHE_HOME"};
  }
  if (const auto folder = home()) return CacheFolder{fs::path(*folder) / ".cache/huggingface/hub", "default"};
  return std::nullopt;
}

std::optional<ConfigPath> Environment::config_path() const {
  if (const auto chosen = values_.find("INFERNO_CONFIG"); chosen != values_.end()) {
    if (chosen->second.empty()) return std::nullopt;
    return ConfigPath{expanded(chosen->second), true};
  }
  const fs::path file = "inferno/config.toml";
  if (const auto folder = get("XDG_CONFIG_HOME")) return ConfigPath{fs::path(expanded(*folder)) / file};
  if (const auto folder = home()) return ConfigPath{fs::path(*folder) / ".config" / file};
  return std::nullopt;
}

std::vector<fs::path> Environment::model_folders() const {
  std::vector<fs::path> folders;
  const std::string list = get("INFERNO_MODELS").value_or("");
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin) folders.emplace_back(expanded(std::string_view(list).substr(begin, end - begin)));
    begin = end + 1;
  }
  return folders;
}

std::optional<fs::path> Environment::state_folder() const {
  if (const auto folder = get("XDG_STATE_HOME")) return fs::path(expanded(*folder)) / "inferno";
  if (const auto folder = home()) return fs::path(*folder) / ".local/state/inferno";
  return std::nullopt;
}

fs::path Environment::temporary_folder() const {
  return get("TMPDIR").value_or("/tmp");
}

bool Environment::allows_colour(bool is_terminal) const {
  if (get("NO_COLOR")) return false;
  if (get("CLICOLOR_FORCE").value_or("0") != "0") return true;
  return is_terminal && get("TERM") != "dumb";
}

bool Environment::allows_redrawing(bool is_terminal) const {
  return is_terminal && get("TERM") != "dumb";
}

bool Environment::allows_unicode() const {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (const auto locale = get(name)) return *locale != "C" && *locale != "POSIX";
  }
  return true;
}

std::string Environment::expanded(std::string_view path) const {
  std::string out;
  if (path == "~" || path.starts_with("~/")) {
    if (const auto folder = home()) {
      out = *folder;
      path.remove_prefix(1);
    }
  }
  for (std::size_t at = 0; at < path.size();) {
    const auto reference = path[at] == '$' ? reference_at(path, at) : std::nullopt;
    const auto found = reference ? values_.find(reference->name) : values_.end();
    if (found == values_.end()) {
      out += path[at++];
    } else {
      out += found->second;
      at += reference->length;
    }
  }
  return out;
}

std::span<const HonouredVariable> Environment::honoured() {
  return variables;
}

hub::HubSettings hub_settings(const Environment& environment) {
  const auto cache = environment.hub_cache();
  hub::HubSettings settings =
      hub::hub_settings({.get = [&](std::string_view name) { return environment.get(name); },
                         .expanded = [&](std::string_view path) { return environment.expanded(path); },
                         .cache = cache ? std::optional(cache->path) : std::nullopt});
  settings.user_agent = fmt::format("inferno/{}", version);
  return settings;
}

CatalogueSettings catalogue_settings(const Environment& environment) {
  const UserFolders folders = user_folders(environment);
  return {.places = model_places(folders),
          .unpack_folders = unpack_folders(folders),
          .hub_endpoint = [environment] { return hub_settings(environment).endpoint; },
          .memory = [] { return system_memory().obtainable; },
          .is_offline = [environment] { return hub_settings(environment).is_offline(); }};
}

}  // namespace inferno
