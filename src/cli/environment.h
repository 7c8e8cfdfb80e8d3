// The only reader of the process environment. Other layers get plain settings; here is what the variables
// mean.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno {

// A variable that changes what Inferno does.
struct HonouredVariable {
  std::string_view name;
  std::string_view meaning;
};

struct CacheFolder {
  std::filesystem::path path;  // where Hugging Face's tools keep models; it need not exist
  std::string said_by;         // "HF_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME" or "default"
};

// Immutable, hence safe to share between threads.
class Environment {
 public:
  using Values = std::map<std::string, std::string, std::less<>>;

  static Environment of_process();
  // `home` is what the user database says, used when HOME is not set.
  Environment(Values values, std::optional<std::string> home);

  // nullopt when it is not set or empty, as the variables below all treat the two alike.
  std::optional<std::string> get(std::string_view name) const;
  std::optional<std::string> home() const;

  // Hugging Face's own rules, so that models are shared with its tools: HF_HUB_CACHE, then HF_HOME/hub, then
  // XDG_CACHE_HOME/huggingface/hub, then ~/.cache/huggingface/hub. nullopt when none of them is known.
  std::optional<CacheFolder> hub_cache() const;

  // INFERNO_MODELS: folders separated by colons, in which models lie by their names.
  std::vector<std::filesystem::path> model_folders() const;
  // XDG_STATE_HOME/inferno, else ~/.local/state/inferno: what is remembered between runs, such as the history
  // of `play`.
  std::optional<std::filesystem::path> state_folder() const;
  // Whether escape sequences may be sent to something that `is_terminal`: NO_COLOR and TERM=dumb say no,
  // CLICOLOR_FORCE says yes to a pipe too.
  bool allows_colour(bool is_terminal) const;

  // Whether a line on something that `is_terminal` may be drawn over: TERM=dumb says no.
  bool allows_redrawing(bool is_terminal) const;

  // A leading ~ and any $NAME or ${NAME} replaced; what is not set stays as it is written.
  std::string expanded(std::string_view path) const;

  static std::span<const HonouredVariable> honoured();

 private:
  Values values_;
  std::optional<std::string> home_;
};

}  // namespace inferno
