#include "cli/config/defaults.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.h"
#include "base/utf8.h"

namespace inferno::config {
namespace {

// What was typed, by option.
struct Typed {
  std::map<const OptionDescription*, Effective> options;
  std::vector<const OptionDescription*> order;

  void add(const OptionDescription& option, const std::string& name, const std::string& value) {
    auto [place, is_new] = options.try_emplace(&option, Effective{name, {}, Source::flag});
    if (is_new) order.push_back(&option);
    place->second.values.push_back(value);
  }
};

const OptionDescription* find_named(const CommandDescription& command, const std::string& name) {
  for (const OptionDescription& option : command.options) {
    if (std::ranges::find(option.names, name) != option.names.end()) return &option;
  }
  return nullptr;
}

bool looks_like_option(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

// Reads a command line as CLI11 does, to know what is given before CLI11 converts values. What it cannot
// understand is left to CLI11, which says why.
class TypedReader {
 public:
  TypedReader(const CommandDescription& command, const std::vector<std::string>& arguments)
      : command_(command), arguments_(arguments) {}

  Typed read() {
    for (at_ = 1; at_ < arguments_.size();) {
      const std::string& argument = arguments_[at_++];
      if (argument == "--") break;
      if (argument.starts_with("--")) {
        read_long(argument);
      } else if (looks_like_option(argument)) {
        read_short(argument);
      } else {
        words_.push_back(argument);
      }
    }
    words_.insert(words_.end(), arguments_.begin() + static_cast<std::ptrdiff_t>(at_), arguments_.end());
    assign_words();
    return std::move(typed_);
  }

 private:
  void read_long(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const OptionDescription* option = find_named(command_, name);
    if (option == nullptr) return;
    if (equals != std::string::npos && equals + 1 < argument.size())
      return typed_.add(*option, name, argument.substr(equals + 1));
    if (!option->takes_value) return typed_.add(*option, name, "true");
    take_values(*option, name);
  }

  // "-n3", "-n 3", "-qy"
  void read_short(const std::string& argument) {
    for (std::size_t letter = 1; letter < argument.size(); ++letter) {
      const std::string name = {'-', argument[letter]};
      const OptionDescription* option = find_named(command_, name);
      if (option == nullptr) return;
      if (!option->takes_value) {
        typed_.add(*option, name, "true");
        continue;
      }
      if (letter + 1 < argument.size()) return typed_.add(*option, name, argument.substr(letter + 1));
      return take_values(*option, name);
    }
  }

  void take_values(const OptionDescription& option, const std::string& name) {
    if (at_ < arguments_.size()) typed_.add(option, name, arguments_[at_++]);
    while (option.takes_words && at_ < arguments_.size() && !looks_like_option(arguments_[at_]))
      typed_.add(option, name, arguments_[at_++]);
  }

  void assign_words() {
    std::size_t word = 0;
    for (const OptionDescription& option : command_.options) {
      if (option.positional.empty() || typed_.options.contains(&option)) continue;
      for (; word < words_.size(); ++word) {
        typed_.add(option, option.positional, words_[word]);
        if (!option.takes_several) {
          ++word;
          break;
        }
      }
    }
  }

  const CommandDescription& command_;
  const std::vector<std::string>& arguments_;
  std::size_t at_ = 1;
  std::vector<std::string> words_;
  Typed typed_;
};

// A default that may apply, the strongest first.
struct Candidate {
  const OptionDescription* option = nullptr;
  std::string key;  // the option's name in the environment or the file
  Effective effective;
  int rank = 0;  // candidates of one rank are of one table
  bool is_read_by_command = false;
};

std::string variable_of(std::string_view prefix, std::string_view name) {
  std::string variable(prefix);
  for (const char letter : name.substr(2)) {
    const bool is_small = letter >= 'a' && letter <= 'z';
    variable += letter == '-' ? '_' : is_small ? static_cast<char>(letter - 'a' + 'A') : letter;
  }
  return variable;
}

std::optional<std::string> boolean_of(const std::string& value) {
  const std::string small = lower_case(value);
  for (const char* word : {"1", "true", "yes", "on"}) {
    if (small == word) return "true";
  }
  for (const char* word : {"0", "false", "no", "off"}) {
    if (small == word) return "false";
  }
  return std::nullopt;
}

class Resolver {
 public:
  Resolver(const CommandDescription& command, const std::vector<std::string>& arguments,
           const DefaultSources& sources)
      : command_(command), sources_(sources), typed_(TypedReader(command, arguments).read()) {
    resolution_.arguments = arguments;
  }

  Resolution resolve() {
    for (const OptionDescription* option : typed_.order) settle(*option, typed_.options.at(option), -1);
    std::vector<Candidate> left = candidates();
    // An option may need one that a weaker default sets.
    for (bool is_changed = true; is_changed;) {
      is_changed = false;
      for (Candidate& candidate : left) {
        if (candidate.option == nullptr || !may_apply(candidate)) continue;
        apply(candidate);
        candidate.option = nullptr;
        is_changed = true;
      }
    }
    resolution_.arguments.insert(resolution_.arguments.begin() + 1, added_.begin(), added_.end());
    resolution_.is_verbose = is_on("--verbose");
    return std::move(resolution_);
  }

 private:
  struct Settled {
    int rank = 0;
    std::string place;
  };

  void settle(const OptionDescription& option, const Effective& effective, int rank) {
    settled_[option.label()] = {rank, effective.place};
    resolution_.effective.push_back(effective);
  }

  bool is_on(const std::string& name) const {
    return std::ranges::any_of(resolution_.effective, [&](const Effective& one) {
      return one.option == name && one.values.front() != "false";
    });
  }

  std::vector<Candidate> candidates() const {
    std::vector<Candidate> all;
    add_environment(all);
    if (sources_.file == nullptr) return all;
    std::vector<Candidate> of_command, of_all;
    for (const Setting& setting : sources_.file->settings) {
      if (setting.scope == Scope::command && setting.owner == command_.name) add(of_command, setting, 200);
      if (setting.scope == Scope::all) add(of_all, setting, 300);
    }
    const std::string model = model_name(all, of_command, of_all);
    // The table with exactly this name first, then the others in the order of the file.
    for (const bool is_exact : {true, false}) {
      std::map<std::string, int> tables;
      for (const Setting& setting : sources_.file->settings) {
        if (setting.scope != Scope::model || model.empty() || !means_model(setting.owner, model)) continue;
        if ((lower_case(setting.owner) == lower_case(model)) != is_exact) continue;
        const auto table = tables.try_emplace(setting.owner, static_cast<int>(tables.size())).first;
        add(all, setting, (is_exact ? 10 : 20) + table->second);
      }
    }
    all.insert(all.end(), of_command.begin(), of_command.end());
    all.insert(all.end(), of_all.begin(), of_all.end());
    return all;
  }

  void add(std::vector<Candidate>& to, const Setting& setting, int rank) const {
    const OptionDescription* option = find_option(command_, setting.key);
    if (option == nullptr) return;
    to.push_back(
        {.option = option,
         .key = setting.key,
         .effective = {"--" + setting.key, setting.values, Source::file, sources_.file->place_of(setting.at)},
         .rank = rank});
  }

  void add_environment(std::vector<Candidate>& all) const {
    for (const OptionDescription& option : command_.options) {
      for (const std::string& name : option.names) {
        if (!name.starts_with("--") || name == "--help") continue;
        // The command itself reads these, and adds them to the keys of flags.
        const bool is_key = name == "--api-key" || name == "--api-key-file";
        const std::string variable = variable_of(is_key ? "INFERNO_" : "INFERNO_ARG_", name);
        const auto value = sources_.environment.get(variable);
        if (!value) continue;
        Candidate candidate = {.option = &option,
                               .key = name.substr(2),
                               .effective = {name, {*value}, Source::environment, variable},
                               .rank = 0,
                               .is_read_by_command = is_key};
        if (!is_key) check_variable(candidate);
        all.push_back(std::move(candidate));
      }
    }
  }

  void check_variable(Candidate& candidate) const {
    std::string& value = candidate.effective.values.front();
    std::string problem;
    if (!candidate.option->takes_value) {
      const auto boolean = boolean_of(value);
      if (!boolean) problem = fmt::format("expected true or false, found {}", quote(value));
      value = boolean.value_or("");
    }
    if (problem.empty() && sources_.problem_of)
      problem = sources_.problem_of(command_.name, candidate.key, candidate.effective.values);
    if (problem.empty()) return;
    fail(ErrorKind::invalid_request, fmt::format("{}: {}", candidate.effective.place, problem),
         {.why = fmt::format("the variable sets {} of inferno {}", candidate.effective.option, command_.name),
          .next = "correct or unset it"});
  }

  // What the command line calls the model, from whatever source.
  std::string model_name(const std::vector<Candidate>& environment, const std::vector<Candidate>& of_command,
                         const std::vector<Candidate>& of_all) const {
    const auto names_model = [](const OptionDescription& option) {
      return option.positional == "MODEL" || std::ranges::find(option.names, "--model") != option.names.end();
    };
    for (const OptionDescription* option : typed_.order) {
      if (names_model(*option)) return typed_.options.at(option).values.front();
    }
    for (const auto* from : {&environment, &of_command, &of_all}) {
      for (const Candidate& candidate : *from) {
        if (names_model(*candidate.option)) return candidate.effective.values.front();
      }
    }
    return "";
  }

  bool may_apply(const Candidate& candidate) const {
    const OptionDescription& option = *candidate.option;
    if (settled_.contains(option.label())) return false;
    for (const auto& [label, other] : settled_) {
      if (!excludes(option, label)) continue;
      if (other.rank == candidate.rank && candidate.effective.source == Source::file)
        fail(ErrorKind::invalid_request,
             fmt::format("{}: {} and {} cannot be used together", candidate.effective.place,
                         candidate.effective.option, label),
             {.why = fmt::format("{} sets the other one", other.place), .next = "keep one of them"});
      return false;
    }
    return std::ranges::all_of(option.needs,
                               [&](const std::string& label) { return settled_.contains(label); });
  }

  bool excludes(const OptionDescription& option, const std::string& label) const {
    if (std::ranges::find(option.excludes, label) != option.excludes.end()) return true;
    return std::ranges::any_of(command_.options, [&](const OptionDescription& other) {
      return other.label() == label &&
             std::ranges::find(other.excludes, option.label()) != other.excludes.end();
    });
  }

  void apply(const Candidate& candidate) {
    settle(*candidate.option, candidate.effective, candidate.rank);
    if (candidate.is_read_by_command) return;
    const std::string name = "--" + candidate.key;
    if (!candidate.option->takes_value) {
      added_.push_back(fmt::format("{}={}", name, candidate.effective.values.front()));
      return;
    }
    for (const std::string& value : candidate.effective.values) {
      added_.push_back(name);
      added_.push_back(value);
    }
    // CLI11 would take the words that follow as further values.
    if (candidate.option->takes_words) added_.emplace_back("--");
  }

  const CommandDescription& command_;
  const DefaultSources& sources_;
  const Typed typed_;
  std::map<std::string, Settled> settled_;  // by label
  std::vector<std::string> added_;
  Resolution resolution_;
};

}  // namespace

Resolution resolve(const CommandDescription& command, const std::vector<std::string>& arguments,
                   const DefaultSources& sources) {
  return Resolver(command, arguments, sources).resolve();
}

bool asks_for_help(const CommandDescription& command, const std::vector<std::string>& arguments) {
  const Typed typed = TypedReader(command, arguments).read();
  return std::ranges::any_of(typed.order,
                             [](const OptionDescription* option) { return option->label() == "--help"; });
}

std::string origin_of(const Effective& effective) {
  switch (effective.source) {
    case Source::flag: return "flag";
    case Source::environment:
    case Source::file: return effective.place;
    case Source::standard: break;
  }
  return "default";
}

std::string value_of(const Effective& effective) {
  if (effective.option == "--api-key") return "(not shown)";
  return fmt::format("{}", fmt::join(effective.values, ", "));
}

std::string described(const CommandDescription& command, const Resolution& resolution) {
  std::string text = fmt::format(
      "options of {}: a flag beats the environment, which beats the configuration file\n", command.name);
  for (const Effective& one : resolution.effective) {
    text += fmt::format("  {} {}  ({})\n", one.option, printable(value_of(one)), printable(origin_of(one)));
  }
  return text;
}

}  // namespace inferno::config
