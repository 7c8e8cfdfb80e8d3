// `inferno config`: which configuration is in force, and where each value comes from.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "chat/json.h"
#include "cli/commands/shared/argument_errors.h"
#include "cli/commands/shared/command_line.h"
#include "cli/config/defaults.h"
#include "cli/environment.h"
#include "cli/terminal/markdown/word_wrap.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/text_table.h"

namespace inferno::command {
namespace {

struct Options {
  bool check = false, json = false;
};

// One line of the output.
struct Row {
  std::string table, setting, value, origin;
};

std::string table_of(const config::Setting& setting) {
  switch (setting.scope) {
    case config::Scope::all: break;
    case config::Scope::command: return fmt::format("[{}]", setting.owner);
    case config::Scope::model: return fmt::format("[model.{}]", toml::written_key(setting.owner));
  }
  return "";
}

std::string joined(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ", ") + value;
  return text;
}

std::vector<Row> rows_of(const config::ConfigFile& file) {
  std::vector<Row> rows;
  for (const config::Setting& setting : file.settings)
    rows.push_back({table_of(setting), setting.key, joined(setting.values), file.place_of(setting.at)});
  for (const config::OwnAlias& alias : file.aliases)
    rows.push_back({"[aliases]", alias.name, alias.model, file.place_of(alias.at)});
  return rows;
}

const CommandDescription& command_of(const std::vector<CommandDescription>& known, const std::string& name) {
  std::vector<std::string> names;
  for (const CommandDescription& command : known) {
    const bool is_second = std::ranges::find(command.second_names, name) != command.second_names.end();
    if (command.name == name || is_second) return command;
    names.push_back(command.name);
  }
  const std::string meant = nearest(name, names);
  fail(ErrorKind::invalid_request, fmt::format("unknown command {}", quote(name)),
       {.why = meant.empty() ? "" : fmt::format("did you mean {}?", meant), .next = "inferno help"});
}

// Every option of the command, as this command line would run.
std::vector<Row> rows_of(const CommandDescription& command, const config::Resolution& resolution) {
  std::vector<Row> rows;
  for (const config::Effective& one : resolution.effective)
    rows.push_back({"", one.option, config::value_of(one), config::origin_of(one)});
  for (const OptionDescription& option : command.options) {
    const bool is_set = std::ranges::any_of(resolution.effective, [&](const config::Effective& one) {
      return one.option == option.positional ||
             std::ranges::find(option.names, one.option) != option.names.end();
    });
    if (is_set || option.label() == "--help") continue;
    rows.push_back({"", option.label(), option.default_text.empty() ? "-" : option.default_text, "default"});
  }
  return rows;
}

std::string file_line(const Environment& environment, bool is_read) {
  const auto path = environment.config_path();
  if (!path) return "file: none (INFERNO_CONFIG is empty, or there is no home folder)";
  return fmt::format("file: {}{}{}", printable(path->path.string()),
                     path->is_chosen ? " (INFERNO_CONFIG)" : "", is_read ? "" : " does not exist");
}

// A screen has the path once, in the first line: "line 3" for "/home/me/.config/inferno/config.toml:3".
std::string without_file(const std::string& origin, const Environment& environment) {
  const auto path = environment.config_path();
  const std::string start = path ? path->path.string() + ":" : "";
  return !start.empty() && origin.starts_with(start) ? "line " + origin.substr(start.size()) : origin;
}

void print_json(const Environment& environment, const std::vector<Row>& rows) {
  const auto path = environment.config_path();
  Json settings = Json::array();
  for (const Row& row : rows) {
    Json one = {{"setting", row.setting}, {"value", row.value}, {"origin", row.origin}};
    if (!row.table.empty()) one["table"] = row.table;
    settings.push_back(std::move(one));
  }
  const Json all = {{"file", path ? Json(path->path.string()) : Json()}, {"settings", std::move(settings)}};
  fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
}

void run(const Options& options, const std::vector<std::string>& words) {
  const Environment environment = Environment::of_process();
  const std::vector<CommandDescription> known = describe(commands());
  const OptionTester tester(commands());
  const auto file = load_config(environment, known, known, tester);
  std::vector<Row> rows = file ? rows_of(*file) : std::vector<Row>();
  if (!words.empty()) {
    const CommandDescription& command = command_of(known, words.front());
    const auto problem_of = [&](const auto& name, const auto& key, const auto& values) {
      return tester.problem_of(name, key, values);
    };
    rows =
        rows_of(command,
                config::resolve(
                    command, words,
                    {.environment = environment, .file = file ? &*file : nullptr, .problem_of = problem_of}));
  }
  if (options.json) return print_json(environment, rows);
  const int columns = terminal::line_columns(STDOUT_FILENO);
  fmt::print("{}\n", terminal::wrapped(file_line(environment, file.has_value()), columns));
  if (options.check) {
    if (file) fmt::print("no errors\n");
    return;
  }
  const std::string order = "a flag beats the environment (INFERNO_ARG_...), which beats the file\n";
  fmt::print("{}", terminal::wrapped(order, columns));
  std::vector<std::vector<std::string>> cells;
  for (const Row& row : rows) {
    cells.push_back({row.table + (row.table.empty() ? "" : " ") + row.setting, row.value,
                     columns > 0 ? without_file(row.origin, environment) : row.origin});
  }
  if (!cells.empty()) fmt::print("{}", text_table({{"SETTING"}, {"VALUE"}, {"FROM"}}, cells, columns));
}

}  // namespace

void config(CommandLine app) {
  const Command command =
      app.command("config", "Show and check the configuration file, and where each value comes from");
  const auto options = std::make_shared<Options>();
  command.takes_rest("[COMMAND LINE]: show every option of it, such as: inferno config serve qwen3");
  command.flag("--check", options->check, "only check the file: exit code 2 if it has an error");
  command.flag("--json", options->json, "print JSON");
  command.run([options, command] { run(*options, command.rest()); });
}

}  // namespace inferno::command
