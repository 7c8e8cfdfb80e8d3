#include "cli/commands/shared/command_line.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <sstream>

#include "base/error.h"

namespace inferno {
namespace {

// Returns what is to be printed: the text of --help or --version, for which CLI11 throws too, or nothing.
// Everything else that it throws is an invalid command line.
std::string parse(CLI::App& app, std::vector<std::string> arguments) {
  try {
    std::ranges::reverse(arguments);  // CLI11 takes them from the end
    app.parse(std::move(arguments));
    return "";
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream text;
      app.exit(error, text, text);
      return text.str();
    }
    const auto chosen = app.get_subcommands();
    const std::string name = chosen.empty() ? "" : chosen.front()->get_name() + " ";
    throw Error(ErrorKind::invalid_request, error.what(),
                {.why = {}, .next = app.get_name() + " " + name + "--help"});
  }
}

}  // namespace

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::range(int low, int high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::range(double low, double high) const {
  option_->check(CLI::Range(low, high));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
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

bool Option::was_given() const {
  return option_->count() > 0;
}

template <class Value>
Option Command::option(const std::string& names, Value& value, const std::string& help) const {
  return Option(app_->add_option(names, value, help));
}

template Option Command::option(const std::string&, int&, const std::string&) const;
template Option Command::option(const std::string&, float&, const std::string&) const;
template Option Command::option(const std::string&, std::string&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<int>&, const std::string&) const;
template Option Command::option(const std::string&, std::optional<std::string>&, const std::string&) const;
template Option Command::option(const std::string&, std::vector<int>&, const std::string&) const;
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
  CLI::Option* option = app_->add_option_function<std::string>(names, take, help)->check(CLI::IsMember(keys));
  std::string shown;
  for (const std::string& key : keys) shown += (shown.empty() ? "" : "|") + key;
  return Option(option->option_text(shown));
}

void Command::after_parsing(std::function<void()> callback) const {
  app_->parse_complete_callback(std::move(callback));
}

void Command::run(std::function<void()> callback) const {
  app_->callback(std::move(callback));
}

Command CommandLine::command(const std::string& name, const std::string& help) const {
  return Command(app_->add_subcommand(name, help));
}

std::string run_command_line(const Program& program, std::span<const AddCommand> commands, int argc,
                             const char* const* argv) {
  CLI::App app(program.description, program.name);
  app.set_version_flag("--version", program.version);
  app.require_subcommand(0, 1);
  for (const AddCommand add : commands) add(CommandLine(&app));
  std::string text = parse(app, std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  return text.empty() && app.get_subcommands().empty() ? app.help() : text;
}

void parse_options(const std::function<void(Command)>& declare, const std::vector<std::string>& arguments) {
  CLI::App app;
  declare(Command(&app));
  parse(app, arguments);
}

}  // namespace inferno
