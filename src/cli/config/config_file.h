// The user's configuration file: defaults for options, for all commands, for one command or for one model,
// and short names of models.
//
//   temperature = 0.7                          # every command that has --temperature
//   [serve]
//   port = 8080                                # inferno serve
//   [model."qwen3"]
//   temperature = 0.6                          # whatever command runs this model
//   [aliases]
//   mine = "org/name:Q4_K_M"
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/commands/shared/description.h"
#include "cli/config/toml.h"
#include "hub/names/aliases.h"

namespace inferno::config {

enum class Scope { all, command, model };

struct Setting {
  Scope scope = Scope::all;
  std::string owner = {};  // the command or the model
  std::string key;         // a long option without its dashes
  std::vector<std::string> values;
  bool is_array = false;
  toml::Position at, value_at = {};
};

struct OwnAlias {
  std::string name, model;
  toml::Position at;
};

struct ConfigFile {
  std::filesystem::path path;
  std::vector<Setting> settings;  // in the order of the file
  std::vector<OwnAlias> aliases;

  // "FILE:3"
  std::string place_of(const toml::Position& at) const;
};

// What a command line would say about `--key VALUE…` of `command`; empty if nothing.
using ProblemOf = std::function<std::string(const std::string& command, const std::string& key,
                                            const std::vector<std::string>& values)>;

// Error{invalid_request} with "FILE:LINE:COLUMN: what" for a key that no option has, and for a value of the
// wrong kind.
ConfigFile interpret(const toml::Document& document, const std::filesystem::path& path,
                     std::span<const CommandDescription> commands);

// Reads and interprets a file. Error{not_found} if it is missing, Error{io} if other users can write to it
// or, unless `is_trusted`, if it belongs to one of them.
ConfigFile read_config(const std::filesystem::path& path, bool is_trusted,
                       std::span<const CommandDescription> commands);

// Error{invalid_request} for the first value that `problem_of` objects to in one of `commands`.
void check_values(const ConfigFile& file, std::span<const CommandDescription> commands,
                  const ProblemOf& problem_of);

// The aliases as the hub's names know them.
std::vector<hub::Alias> aliases_of(const ConfigFile& file);

// Whether the table of `model` is for a model that a command line calls `name`: the same name or alias, or
// the same repository where the table names no revision or quantization.
bool means_model(const std::string& model, const std::string& name);

// The option that a key means; nullptr if the command has none.
const OptionDescription* find_option(const CommandDescription& command, const std::string& key);

}  // namespace inferno::config
