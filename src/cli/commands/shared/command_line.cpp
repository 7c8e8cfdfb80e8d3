#include "cli/commands/shared/command_line.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <sstream>
#include <system_error>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "cli/commands/shared/argument_errors.h"
#include "cli/commands/shared/other_programs.h"
#include "cli/config/config_file.h"
#include "cli/config/defaults.h"
#include "cli/environment.h"
#include "cli/terminal/streams.h"

namespace inferno {
namespace {

// Arguments that no option took, in the order typed: CLI11 keeps them in another.
std::vector<std::string> unexpected(const CLI::App& app, const std::vector<std::string>& typed) {
  std::vector<std::string> left = app.remaining(/*recurse=*/true), ordered;
  for (const std::string& argument : typed) {
    const auto found = std::ranges::find(left, argument);
    if (found == left.end()) continue;
    ordered.push_back(argument);
    left.erase(found);
  }
  return ordered;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
    for (const std::string& alias : one->get_aliases()) names.push_back(alias);
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

[[noreturn]] void refuse(const std::string& what, const std::string& why, const std::string& next) {
  throw Error(ErrorKind::invalid_request, what, {.why = why, .next = next});
}

std::string help_of(const CLI::App& command) {
  const CLI::App* program = command.get_parent();
  return (program == nullptr ? "" : program->get_name() + " ") + command.get_name() + " --help";
}

// A word in the place of the command that is none.
[[noreturn]] void refuse_first(const CLI::App& app, const std::string& word) {
  const bool is_option = word.starts_with('-');
  refuse(fmt::format("unknown {} {}", is_option ? "option" : "command", is_option ? word : quote(word)),
         question(nearest(word, is_option ? option_names(app) : command_names(app))),
         app.get_name() + " help");
}

// The option that was perhaps meant: its name misspelled, or another program's name for it.
std::string meant_option(const std::string& name, const CLI::App& command) {
  const std::string own(counterpart_of(name));
  return !own.empty() && command.get_option_no_throw(own) != nullptr ? own
                                                                     : nearest(name, option_names(command));
}

[[noreturn]] void refuse_unexpected(const CLI::App& app, const std::vector<std::string>& typed) {
  const auto chosen = app.get_subcommands();
  const std::vector<std::string> left = unexpected(app, typed);
  const std::string first = left.empty() ? "" : left.front();
  if (chosen.empty()) refuse_first(app, first);
  const std::string help = help_of(*chosen.front());
  const auto option =
      std::ranges::find_if(left, [](const std::string& one) { return one.size() > 1 && one[0] == '-'; });
  if (option != left.end()) {
    const std::string name = option->substr(0, option->find('='));
    refuse(fmt::format("unknown option {}", name), question(meant_option(name, *chosen.front())), help);
  }
  std::vector<std::string> positionals;
  for (const CLI::Option* one : chosen.front()->get_options(
           [](const CLI::Option* o) { return o->get_positional() && !o->get_group().empty(); }))
    positionals.push_back(one->get_name(/*positional=*/true));
  refuse(fmt::format("unexpected argument{}: {}", left.size() == 1 ? "" : "s", fmt::join(left, " ")),
         expected_arguments(positionals), help);
}

// "--count" of CLI11's messages "--count: …" and "Could not convert: --count = x".
std::string words_of(const CLI::ParseError& error) {
  const std::string text = error.what();
  constexpr std::string_view conversion = "Could not convert: ";
  if (text.starts_with(conversion)) {
    const std::string rest = text.substr(conversion.size());
    const std::size_t equals = rest.find(" = ");
    if (equals != std::string::npos)
      return fmt::format("{}: expected a number, found {}", rest.substr(0, equals),
                         quote(rest.substr(equals + 3)));
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name = text.substr(0, text.find(':'));
    const std::size_t count = text.find("At Most 1 required but received ");
    if (count == std::string::npos) return name + ": no value given";
    return fmt::format("{}: expected once, given {} times", name, text.substr(text.rfind(' ') + 1));
  }
  if (const std::size_t at = text.find(" excludes "); at != std::string::npos)
    return fmt::format("{} and {} cannot be used together", text.substr(0, at), text.substr(at + 10));
  if (const std::size_t at = text.find(" requires "); at != std::string::npos)
    return fmt::format("{} needs {}", text.substr(0, at), text.substr(at + 10));
  if (const std::size_t at = text.find(" is required"); at != std::string::npos)
    return fmt::format("{} is missing", text.substr(0, at));
  return text;
}

CommandDescription describe(const CLI::App& command);

// Returns what is to be printed: the text of --help or --version, for which CLI11 throws too, or nothing.
// Everything else that it throws is an invalid command line.
std::string parse(CLI::App& app, const std::vector<std::string>& typed, int columns) {
  try {
    std::vector<std::string> arguments(typed.rbegin(), typed.rend());  // CLI11 takes them from the end
    app.parse(std::move(arguments));
    return "";
  } catch (const CLI::CallForHelp&) {
    const auto chosen = app.get_subcommands();
    const CLI::App& command = chosen.empty() ? app : *chosen.front();
    const std::string usage = chosen.empty() ? app.get_name() : app.get_name() + " " + command.get_name();
    return help_page(describe(command), usage, command.get_footer(), columns);
  } catch (const CLI::ExtrasError&) {
    refuse_unexpected(app, typed);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      app.exit(error, text, text);
      return text.str();
    }
    const auto chosen = app.get_subcommands();
    std::string what = words_of(error);
    // CLI11 names no option that help does not list. Its value is missing at the end; "-rea" is "--rea" here.
    if (what.starts_with(':'))
      what.insert(0, find_flag_of_others(typed.back()) != nullptr ? typed.back() : typed.back().substr(1));
    refuse(what, "", help_of(chosen.empty() ? app : *chosen.front()));
  } catch (const Error& error) {
    // Where an error about what was asked for does not say what to do next, the command's help does.
    const auto chosen = app.get_subcommands();
    if (chosen.empty() || error.kind() != ErrorKind::invalid_request || !error.advice().next.empty()) throw;
    refuse(error.what(), error.advice().why, help_of(*chosen.front()));
  }
}

bool takes_value(const CLI::App& command, const std::string& name) {
  const CLI::Option* option = command.get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_min() > 0;
}

// Whether "-qn5" is options of one letter: flags, and perhaps an option whose value follows at once. A value
// that begins with a letter does not count, because "-ag" would be -a with the value "g".
bool is_combined(const CLI::App& command, std::string_view name) {
  const auto is_letter = [](char one) { return (one >= 'a' && one <= 'z') || (one >= 'A' && one <= 'Z'); };
  if (!is_letter(name[1])) return true;  // a number, perhaps
  for (std::size_t at = 1; at < name.size(); ++at) {
    const std::string one = fmt::format("-{}", name[at]);
    if (command.get_option_no_throw(one) == nullptr) return false;
    if (takes_value(command, one)) return at + 1 == name.size() || !is_letter(name[at + 1]);
  }
  return true;
}

// Of "-oout.txt", which is refused because it might as well be an option of another program.
std::string needs_blank(const CLI::App& command, const std::string& argument) {
  const std::string option = argument.substr(0, 2), value = argument.substr(2);
  if (!takes_value(command, option)) return "";
  return fmt::format("a value that begins with a letter needs a blank before it: {} {}", option, value);
}

// CLI11 would take numbers, too, and calls words that it does not know no number.
void check_flag_value(const CLI::App& command, const std::string& argument) {
  const std::size_t end = std::min(argument.find('='), argument.size());
  const CLI::Option* flag = command.get_option_no_throw(argument.substr(0, end));
  if (end == argument.size() || flag == nullptr || flag->get_items_expected_max() > 0) return;
  const std::string problem = switch_problem(argument.substr(end + 1));
  if (!problem.empty()) refuse(argument.substr(0, end) + ": " + problem, "", help_of(command));
}

// What other programs write, as an option of this command. llama.cpp writes options of two or three letters
// with one dash (-np 4), which CLI11 would take for that many options of one letter: where the command has
// such an option, the second dash is added.
std::string own_option(const CLI::App& app, const CLI::App& command, const std::string& argument) {
  const std::size_t end = std::min(argument.find('='), argument.size());
  const std::string name = argument.substr(0, end);
  if (command.get_option_no_throw(name) != nullptr) return argument;
  const OtherFlag* flag = find_flag_of_others(name);
  const std::string base = name.substr(0, name.find('.'));
  if (base != name && flag != nullptr && find_flag_of_others(base) == flag)
    return own_option(app, command, base + argument.substr(end));
  if (flag != nullptr && flag->use == OtherFlagUse::renamed) {
    const std::string meant(flag->advice);
    if (command.get_option_no_throw(meant) != nullptr) return meant + argument.substr(end);
  }
  const bool has_one_dash = name.size() > 2 && name[0] == '-' && name[1] != '-';
  if (has_one_dash && command.get_option_no_throw("-" + name) != nullptr) return "-" + argument;
  // vLLM takes both spellings.
  if (const std::string dashed = with_dashes(name);
      dashed != name && command.get_option_no_throw(dashed) != nullptr) {
    return dashed + argument.substr(end);
  }
  if (has_one_dash && (is_long_with_one_dash(name) || !is_combined(command, name))) {
    const std::string meant = meant_option(name, command);
    refuse("unknown option " + name, meant.empty() ? needs_blank(command, argument) : question(meant),
           help_of(command));
  }
  return argument;
}

std::vector<std::string> with_own_options(const CLI::App& app, std::vector<std::string> arguments) {
  const auto chosen = app.get_subcommands(
      [&](const CLI::App* one) { return !arguments.empty() && one->check_name(arguments.front()); });
  if (chosen.empty()) return arguments;
  const CLI::App& command = *chosen.front();
  for (std::size_t at = 1; at < arguments.size() && arguments[at] != "--"; ++at) {
    if (arguments[at].size() < 2 || arguments[at][0] != '-') continue;
    arguments[at] = own_option(app, command, arguments[at]);
    check_flag_value(command, arguments[at]);
    // A value may look like an option.
    if (takes_value(command, arguments[at])) ++at;
  }
  return arguments;
}

// The labels of other options.
std::vector<std::string> labels_of(const std::set<CLI::Option*>& options) {
  std::vector<std::string> labels;
  for (const CLI::Option* option : options) {
    OptionDescription named;
    for (const std::string& name : option->get_lnames()) named.names.push_back("--" + name);
    if (option->get_positional()) named.positional = option->get_name(/*positional=*/true);
    labels.push_back(named.label());
  }
  return labels;
}

OptionDescription describe(const CLI::Option& option) {
  OptionDescription shown;
  for (const std::string& name : option.get_snames()) shown.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) shown.names.push_back("--" + name);
  shown.help = option.get_description();
  if (option.get_positional()) shown.positional = option.get_name(/*positional=*/true);
  shown.group = option.get_group();
  shown.is_required = option.get_required();
  shown.takes_value = option.get_expected_max() > 0 && option.get_type_size_max() > 0;
  const std::string type = option.get_type_name();
  shown.value_name = type == "INT" || type == "UINT" || type == "FLOAT" ? "N" : type;
  shown.takes_several = shown.takes_value && option.get_items_expected_max() > 1;
  shown.takes_words = shown.takes_several && option.get_allow_extra_args();
  shown.default_text = std::string(trimmed(option.get_default_str(), "[]"));
  shown.excludes = labels_of(option.get_excludes());
  shown.needs = labels_of(option.get_needs());
  // choice_of() shows the values in this way.
  const std::string& text = option.get_option_text();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('|', at), text.size());
    shown.choices.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return shown;
}

// Without the options that the help does not show.
CommandDescription describe(const CLI::App& command) {
  CommandDescription shown = {
      .name = command.get_name(), .help = command.get_description(), .second_names = command.get_aliases()};
  for (const CLI::Option* option : command.get_options()) {
    if (!option->get_group().empty()) shown.options.push_back(describe(*option));
  }
  return shown;
}

std::vector<CommandDescription> commands_of(const CLI::App& app) {
  std::vector<CommandDescription> all;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    all.push_back(describe(*command));
  return all;
}

}  // namespace

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::range(int low, int high) const {
  return range(static_cast<double>(low), static_cast<double>(high));
}

Option Option::range(double low, double high) const {
  option_->check([low, high](const std::string& text) -> std::string {
    double value = 0;
    if (!CLI::detail::lexical_cast(text, value))
      return fmt::format("expected a number, found {}", quote(text));
    if (value >= low && value <= high) return "";
    return fmt::format("expected {} to {}, found {}", low, high, text);
  });
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check([values](const std::string& text) -> std::string {
    if (std::ranges::find(values, text) != values.end()) return "";
    const std::string meant = nearest(text, values);
    return fmt::format("expected {}, found {}{}", listed(values), quote(text),
                       meant.empty() ? "" : fmt::format(" (did you mean {}?)", meant));
  });
  return *this;
}

Option Option::check(std::function<std::string(const std::string&)> problem_of) const {
  option_->check(std::move(problem_of));
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::separated_by(char delimiter) const {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::single_value() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::group(const std::string& heading) const {
  option_->group(heading);
  return *this;
}

Option Option::value_name(const std::string& name) const {
  option_->type_name(name);
  return *this;
}

bool Option::was_given() const {
  return option_->count() > 0;
}

template <class Value>
Option Command::option(const std::string& names, Value& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

template Option Command::option(const std::string&, int&, const std::string&) const;
template Option Command::option(const std::string&, float&, const std::string&) const;
template Option Command::option(const std::string&, double&, const std::string&) const;
template Option Command::option(const std::string&, std::uint64_t&, const std::string&) const;
template Option Command::option(const std::string&, std::string&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<int>&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<std::string>&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<std::uint64_t>&, const std::string&) const;
template Option Command::option(const std::string&, std::vector<int>&, const std::string&) const;
template Option Command::option(const std::string&, std::vector<double>&, const std::string&) const;
template Option Command::option(const std::string&, std::vector<std::string>&, const std::string&) const;

Option Command::option(const std::string& names, std::function<void(const std::string&)> take,
                       const std::string& help) const {
  return Option(app_->add_option_function<std::string>(names, std::move(take), help));
}

Option Command::option(const std::string& names, std::function<void(const std::vector<std::string>&)> take,
                       const std::string& help) const {
  return Option(app_->add_option_function<std::vector<std::string>>(names, std::move(take), help));
}

Option Command::flag(const std::string& names, bool& value, const std::string& help) const {
  if (names.starts_with('!')) {
    // CLI11 would show such a flag as --no-x{false}.
    std::string plain = names;
    std::erase(plain, '!');
    return flag(plain, [&value] { value = false; }, help);
  }
  return Option(app_->add_flag(names, value, help));
}

Option Command::flag(const std::string& names, std::optional<bool>& value, const std::string& help) const {
  // CLI11 would count a std::optional.
  return Option(app_->add_flag_function(names, [&value](std::int64_t count) { value = count > 0; }, help));
}

Option Command::flag(const std::string& names, std::function<void()> set, const std::string& help) const {
  return Option(app_->add_flag_callback(names, std::move(set), help));
}

Option Command::choice_of(const std::string& names, const std::vector<std::string>& keys,
                          std::function<void(std::size_t)> set, const std::string& help) const {
  const auto take = [keys, set = std::move(set)](const std::string& key) {
    set(static_cast<std::size_t>(std::find(keys.begin(), keys.end(), key) - keys.begin()));
  };
  CLI::Option* option = app_->add_option_function<std::string>(names, take, help);
  Option(option).one_of(keys);
  std::string shown;
  for (const std::string& key : keys) shown += (shown.empty() ? "" : "|") + key;
  return Option(option->option_text(shown));
}

[[noreturn]] static void refuse_flag(std::string_view name, std::string_view value, const OtherFlag& flag) {
  const bool has_other_values = flag.use == OtherFlagUse::no_effect;
  refuse(value.empty() ? fmt::format("{}: this command does not have the option", name)
                       : fmt::format("{}: {} is not supported", name, quote(value)),
         "", fmt::format("{}{}", has_other_values ? "leave it out: " : "", flag.advice));
}

static void add_flag_of_others(CLI::App& app, std::string_view name, const OtherFlag& flag) {
  const std::string option = (name.size() > 2 && name[1] != '-' ? "-" : "") + std::string(name);
  if (app.get_option_no_throw(option) != nullptr) return;
  const auto note = [name, &flag] { say(fmt::format("note: {} has no effect: {}\n", name, flag.advice)); };
  if (flag.use == OtherFlagUse::no_effect && flag.values.empty()) {
    app.add_flag_callback(option, note, "")->group("");
    return;
  }
  const auto take = [name, &flag, note](const std::vector<std::string>& values) {
    const std::string value = values.empty() ? "" : values.front();
    if (flag.use == OtherFlagUse::refused) refuse_flag(name, "", flag);
    if (!value.empty() && !is_harmless(flag, value)) refuse_flag(name, value, flag);
    note();
  };
  const bool needs_value = flag.use == OtherFlagUse::no_effect && !flag.values.starts_with('?');
  app.add_option_function<std::vector<std::string>>(option, take, "")
      ->expected(needs_value ? 1 : 0, 1)
      ->allow_extra_args(false)
      ->group("");
}

void Command::flags_of_others() const {
  for (const OtherFlag& flag : flags_of_other_programs()) {
    if (flag.use == OtherFlagUse::ours || flag.use == OtherFlagUse::renamed) continue;
    for (const std::string_view name : words_of_list(flag.names)) add_flag_of_others(*app_, name, flag);
  }
}

void Command::takes_rest(const std::string& help) const {
  app_->prefix_command()->footer(help);
}

std::vector<std::string> Command::rest() const {
  return app_->remaining();
}

void Command::after_parsing(std::function<void()> callback) const {
  app_->parse_complete_callback(std::move(callback));
}

void Command::run(std::function<void()> callback) const {
  app_->callback(std::move(callback));
}

Command CommandLine::command(const std::string& name, const std::string& help,
                             const std::vector<std::string>& second_names) const {
  CLI::App* command = app_->add_subcommand(name, help);
  for (const std::string& second : second_names) command->alias(second);
  return Command(command);
}

// `help` and `help COMMAND` are --help.
static std::vector<std::string> without_help_word(std::vector<std::string> arguments) {
  if (arguments.empty() || arguments.front() != "help") return arguments;
  arguments.erase(arguments.begin());
  arguments.emplace_back("--help");
  return arguments;
}

std::vector<CommandDescription> describe(std::span<const AddCommand> commands) {
  CLI::App app;
  for (const AddCommand add : commands) add(CommandLine(&app));
  return commands_of(app);
}

OptionTester::OptionTester(std::span<const AddCommand> commands) : app_(std::make_unique<CLI::App>()) {
  for (const AddCommand add : commands) add(CommandLine(app_.get()));
}
OptionTester::~OptionTester() = default;

std::string OptionTester::problem_of(const std::string& command, const std::string& key,
                                     const std::vector<std::string>& values) const {
  CLI::Option* option = app_->get_subcommand(command)->get_option("--" + key);
  option->clear();
  try {
    for (const std::string& value : values)
      option->add_result(option->get_expected_max() == 0 ? option->get_flag_value(key, value) : value);
    if (option->check_lname("model")) {
      option->reduced_results();
    } else {
      option->run_callback();
    }
  } catch (const CLI::ParseError& error) {
    return words_of(error);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::optional<config::ConfigFile> load_config(const Environment& environment,
                                              std::span<const CommandDescription> known,
                                              std::span<const CommandDescription> checked,
                                              const OptionTester& tester) {
  const auto found = environment.config_path();
  std::error_code ignored;
  if (!found || (!found->is_chosen && !std::filesystem::exists(found->path, ignored))) return std::nullopt;
  config::ConfigFile file = config::read_config(found->path, found->is_chosen, known);
  config::check_values(file, checked, [&](const auto& command, const auto& key, const auto& values) {
    return tester.problem_of(command, key, values);
  });
  hub::add_aliases(config::aliases_of(file));
  return file;
}

// The arguments with the defaults of the environment and the configuration. A command without options, and
// the one that explains the configuration, need none.
static std::vector<std::string> with_defaults(const CLI::App& app, std::span<const AddCommand> commands,
                                              const std::vector<std::string>& arguments) {
  const std::vector<CommandDescription> known = commands_of(app);
  const auto command = std::ranges::find_if(known, [&](const CommandDescription& one) {
    return one.name == arguments.front() ||
           std::ranges::find(one.second_names, arguments.front()) != one.second_names.end();
  });
  if (command == known.end() || command->name == "config") return arguments;
  const bool has_options = std::ranges::any_of(command->options, [](const OptionDescription& option) {
    return !option.names.empty() && option.label() != "--help";
  });
  if (!has_options || config::asks_for_help(*command, arguments)) return arguments;
  const Environment environment = Environment::of_process();
  const OptionTester tester(commands);
  const auto file = load_config(environment, known, std::span(&*command, 1), tester);
  const config::Resolution resolution =
      config::resolve(*command, arguments,
                      {.environment = environment,
                       .file = file ? &*file : nullptr,
                       .problem_of = [&](const auto& name, const auto& key, const auto& values) {
                         return tester.problem_of(name, key, values);
                       }});
  if (resolution.is_verbose) say(config::described(*command, resolution));
  return resolution.arguments;
}

std::string run_command_line(const Program& program, std::span<const AddCommand> commands, int argc,
                             const char* const* argv) {
  CLI::App app(program.overview.description, program.name);
  app.set_version_flag("-V,--version", program.version);
  app.add_flag_callback(
      "--licenses", [&program] { throw CLI::CallForVersion(program.licenses(), 0); },
      "Show the licenses of this program and of the libraries in it, and exit");
  app.require_subcommand(0, 1);
  for (const AddCommand add : commands) add(CommandLine(&app));
  std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  arguments = without_help_word(std::move(arguments));
  const bool wants_overview =
      arguments.empty() || (arguments.size() == 1 && (arguments[0] == "--help" || arguments[0] == "-h"));
  if (wants_overview) return overview_page(program.overview, commands_of(app), program.columns);
  const std::string& first = arguments.front();
  const std::vector<std::string> names = command_names(app);
  if (!first.starts_with('-') && std::ranges::find(names, first) == names.end()) refuse_first(app, first);
  arguments = with_own_options(app, std::move(arguments));
  return parse(app, with_defaults(app, commands, arguments), program.columns);
}

void parse_options(const std::function<void(Command)>& declare, const std::vector<std::string>& arguments) {
  CLI::App app;
  declare(Command(&app));
  parse(app, arguments, Program().columns);
}

}  // namespace inferno
