#include "cli/commands/shared/help_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace inferno {
namespace {

constexpr int min_columns = 30;
constexpr int option_column = 26, narrow_option_column = 6;  // where explanations begin
constexpr int narrow = 64;                                   // screens on which they get lines of their own

// Adds words to a line that is `column` wide so far; further lines are indented.
void add_words(std::string& out, std::string_view text, int column, int indent, int columns) {
  bool is_first = true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const int width = static_cast<int>(word.size()) + (is_first ? 0 : 1);
    if (column + width > columns && column > indent) {
      out += "\n" + std::string(static_cast<std::size_t>(indent), ' ');
      column = indent;
      is_first = true;
    }
    out += (is_first ? "" : " ") + std::string(word);
    column += static_cast<int>(word.size()) + (is_first ? 0 : 1);
    is_first = false;
  }
  out += "\n";
}

std::string paragraph(std::string_view text, int columns) {
  std::string out;
  add_words(out, text, 0, 0, columns);
  return out;
}

// "  name   explanation", where explanations begin at `at`; after a longer name they get a line.
std::string entry(std::string_view name, std::string_view text, int at, int columns) {
  std::string out = "  ";
  const auto margin = static_cast<int>(name.find_first_not_of(' '));  // further in than the others
  out.append(static_cast<std::size_t>(margin), ' ');
  add_words(out, name.substr(static_cast<std::size_t>(margin)), 2 + margin, 6, columns);
  if (text.empty()) return out;
  const bool is_one_line = out.find('\n') + 1 == out.size();
  if (is_one_line && static_cast<int>(out.size()) + 1 <= at) {
    out.pop_back();
    out.append(static_cast<std::size_t>(at) - out.size(), ' ');
  } else {
    out.append(static_cast<std::size_t>(at), ' ');
  }
  add_words(out, text, at, at, columns);
  return out;
}

// "-n, --max-tokens N"
std::string left_of(const OptionDescription& option) {
  if (option.names.empty()) return option.positional + (option.takes_words ? "..." : "");
  std::string text = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.takes_value) return text;
  return text + " " +
         (option.choices.empty() ? option.value_name : fmt::format("{}", fmt::join(option.choices, "|")));
}

std::string right_of(const OptionDescription& option) {
  std::string text = option.help;
  std::vector<std::string> notes;
  if (!option.default_text.empty()) notes.push_back("default: " + option.default_text);
  if (!option.needs.empty()) notes.push_back(fmt::format("needs {}", fmt::join(option.needs, ", ")));
  constexpr std::size_t max_excludes = 3;  // the error names them all
  if (!option.excludes.empty() && option.excludes.size() <= max_excludes)
    notes.push_back(fmt::format("not with {}", fmt::join(option.excludes, ", ")));
  if (!notes.empty()) text += fmt::format(" ({})", fmt::join(notes, "; "));
  return text;
}

}  // namespace

std::string help_page(const CommandDescription& command, std::string_view usage, std::string_view afterwards,
                      int columns) {
  columns = std::max(columns, min_columns);
  const int at = columns < narrow ? narrow_option_column : option_column;
  std::string text = paragraph(command.help, columns), line = fmt::format("Usage: {} [OPTIONS]", usage);
  std::vector<std::string> headings;
  for (const OptionDescription& option : command.options) {
    if (std::ranges::find(headings, option.group) == headings.end()) headings.push_back(option.group);
    if (option.positional.empty()) continue;
    const std::string name = option.positional + (option.takes_words ? "..." : "");
    line += option.is_required ? " " + name : " [" + name + "]";
  }
  text += "\n" + paragraph(line, columns);
  const auto add = [&](const std::string& heading, const auto& belongs) {
    std::string entries;
    for (const OptionDescription& option : command.options) {
      if (belongs(option)) entries += entry(left_of(option), right_of(option), at, columns);
    }
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", heading, entries);
  };
  add("Arguments", [](const OptionDescription& option) { return option.names.empty(); });
  for (const std::string& heading : headings)
    add(heading, [&](const auto& option) { return !option.names.empty() && option.group == heading; });
  if (!afterwards.empty()) text += "\n" + paragraph(afterwards, columns);
  return text;
}

std::string overview_page(const Overview& overview, const std::vector<CommandDescription>& commands,
                          int columns) {
  constexpr int names = 15, meanings = 36;
  columns = std::max(columns, min_columns);
  std::string text = paragraph(overview.description, columns);
  std::vector<std::string> grouped;
  const auto add = [&](const CommandDescription& command) {
    text += entry(command.name, command.help, names, columns);
    grouped.push_back(command.name);
  };
  for (const CommandGroup& group : overview.groups) {
    text += "\n" + group.heading + "\n";
    for (const std::string& name : group.commands) {
      const auto found = std::ranges::find(commands, name, &CommandDescription::name);
      if (found != commands.end()) add(*found);
    }
  }
  bool has_rest = false;
  for (const CommandDescription& command : commands) {
    if (std::ranges::find(grouped, command.name) != grouped.end()) continue;
    if (!has_rest) text += "\n" + overview.rest + "\n";
    has_rest = true;
    add(command);
  }
  if (!overview.examples.empty()) text += "\nExamples\n";
  for (const Example& example : overview.examples)
    text += entry("  " + example.command, example.meaning, columns < narrow ? narrow_option_column : meanings,
                  columns);
  if (!overview.last.empty()) text += "\n" + paragraph(overview.last, columns);
  return text;
}

}  // namespace inferno
