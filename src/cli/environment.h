// The process environment: the only code that reads it, and what its variables mean. Only commands call
// of_process(); everything else gets plain settings.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "catalogue/catalogue.h"
#include "hub/settings.h"

namespace inferno {

// A variable that changes what Inferno does.
struct HonouredVariable {
  std::string_view name;
  std::string_view meaning;
};

// Where the configuration is; the file need not exist.
struct ConfigPath {
  std::filesystem::path path;
  bool is_chosen = false;  // INFERNO_CONFIG names it
};

struct CacheFolder {
  std::filesystem::path path;  // of Hugging Face's tools; it need not exist
  std::string said_by;         // "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME" or "default"
};

// Immutable, hence safe to share between threads.
class Environment {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  static Environment of_process();
  // `home` is the home folder in the user database, used if HOME is not set.
  Environment(Values values, std::optional<std::string> home);

  // nullopt if the variable is not set or empty: no variable but INFERNO_CONFIG distinguishes the two.
  std::optional<std::string> get(std::string_view name) const;
  std::optional<std::string> home() const;

  // Hugging Face's own rules, so that models are shared with its tools: HF_HUB_CACHE, then HF_HOME/hub, then
  // XDG_CACHE_HOME/huggingface/hub, then ~/.cache/huggingface/hub. nullopt without a home folder.
  std::optional<CacheFolder> hub_cache() const;

  // INFERNO_CONFIG, else XDG_CONFIG_HOME/inferno/config.toml, else ~/.config/inferno/config.toml. nullopt if
  // INFERNO_CONFIG is set and empty, and without a home folder.
  std::optional<ConfigPath> config_path() const;

  // INFERNO_MODELS: folders of models, separated by colons.
  std::vector<std::filesystem::path> model_folders() const;
  // XDG_STATE_HOME/inferno, else ~/.local/state/inferno: what is kept between runs, such as the history of
  // `play`.
  std::optional<std::filesystem::path> state_folder() const;
  // TMPDIR, else /tmp; it need not exist.
  std::filesystem::path temporary_folder() const;
  // Whether colours may be written to an output that is a terminal or not. NO_COLOR and TERM=dumb forbid
  // them, CLICOLOR_FORCE allows them for a pipe too.
  bool allows_colour(bool is_terminal) const;

  // Whether a line of an output may be redrawn: on a terminal, unless TERM=dumb.
  bool allows_redrawing(bool is_terminal) const;

  // Whether an output may have characters beyond ASCII: not if LC_ALL, LC_CTYPE or LANG, the first of them
  // that is set, is C or POSIX. Without any of them, as in many containers, terminals still show UTF-8.
  bool allows_unicode() const;

  // A leading ~ and every $NAME or ${NAME} replaced; a variable that is not set remains as it is written.
  std::string expanded(std::string_view path) const;

  static std::span<const HonouredVariable> honoured();

 private:
  Values values_;
  std::optional<std::string> home_;
};

// Error{invalid_request} naming a variable with an invalid value.
hub::HubSettings hub_settings(const Environment& environment);

// Where models are found on this machine, and where the built-in one may be unpacked.
CatalogueSettings catalogue_settings(const Environment& environment);

}  // namespace inferno
