// What the options of a command line are in the end: a flag beats the environment, which beats the
// configuration file; in the file, the table of the model beats that of the command, which beats the top.
#pragma once

#include <string>
#include <vector>

#include "cli/commands/shared/description.h"
#include "cli/config/config_file.h"
#include "cli/environment.h"

namespace inferno::config {

enum class Source { flag, environment, file, standard };

struct Effective {
  std::string option;               // "--temperature"; "MODEL" for an argument
  std::vector<std::string> values;  // "true" or "false" for a flag
  Source source = Source::standard;
  std::string place = {};  // "INFERNO_ARG_TEMPERATURE", "/home/me/.config/inferno/config.toml:3"
};

struct Resolution {
  std::vector<std::string> arguments;  // with the defaults as options after the command's name
  std::vector<Effective> effective;    // flags, then what the environment and the file add
  bool is_verbose = false;             // --verbose is on
};

struct DefaultSources {
  const Environment& environment;
  const ConfigFile* file = nullptr;
  ProblemOf problem_of = {};  // of values in the environment; those of the file were checked before
};

// `arguments` begin with the command's name. A default is left out if an option that was given excludes it,
// or if it needs one that was not given. Error{invalid_request} if two defaults of one table exclude each
// other, and for a variable whose value the option does not take.
Resolution resolve(const CommandDescription& command, const std::vector<std::string>& arguments,
                   const DefaultSources& sources);

// Whether --help or -h is among the options: then no defaults are needed.
bool asks_for_help(const CommandDescription& command, const std::vector<std::string>& arguments);

// "flag", "INFERNO_ARG_TEMPERATURE", "config.toml:3" or "default"
std::string origin_of(const Effective& effective);

// The values for people: secrets are not shown.
std::string value_of(const Effective& effective);

// What --verbose prints: one line for each option that is not the program's own default, with its origin.
std::string described(const CommandDescription& command, const Resolution& resolution);

}  // namespace inferno::config
