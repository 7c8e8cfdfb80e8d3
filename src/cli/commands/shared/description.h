// What `--help` tells, as data: for completion, and for the configuration, whose keys are option names.
#pragma once

#include <string>
#include <vector>

namespace inferno {

struct OptionDescription {
  std::vector<std::string> names = {};                 // "-o", "--output"; empty if it is only positional
  std::string positional = {};                         // "MODEL"; empty if it is not an argument
  std::string help = {};                               // one line
  std::string group = {};                              // the heading above it in the help
  bool is_required = false;                            // an argument that must be given
  bool takes_value = false;                            // otherwise a flag
  std::string value_name = {};                         // what the help shows for the value: "N", "TEXT"
  bool takes_several = false;                          // values, by repeating it or as a list
  bool takes_words = false;                            // all words that follow, up to the next option
  std::vector<std::string> choices = {};               // the values it takes, if they are few
  std::string default_text = {};                       // what the help shows; empty if it shows none
  std::vector<std::string> excludes = {}, needs = {};  // labels of other options

  // The first long name, "--output", else "-o" or "MODEL".
  std::string label() const {
    for (const std::string& name : names) {
      if (name.starts_with("--")) return name;
    }
    return names.empty() ? positional : names.front();
  }
};

struct CommandDescription {
  std::string name, help;
  std::vector<std::string> second_names = {};
  std::vector<OptionDescription> options = {};  // those that the help shows, in the same order
};

}  // namespace inferno
