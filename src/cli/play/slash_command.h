// The commands of `play`: lines that begin with a slash.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace inferno::play {

enum class Action {
  help,
  leave,
  clear,
  system,
  set,
  show,
  load,
  save,
  save_anyway,
  open,
  regenerate,
  undo,
  stats,
  context,
  list,
  copy,
  edit,
  unknown
};

// What follows the word of a command. After `none` nothing may.
enum class Argument { none, text, file, new_file, model, setting };
Argument argument_of(Action action);

struct SlashCommand {
  Action action = Action::unknown;
  std::string name;       // as typed, for messages
  std::string arguments;  // the rest of the line, trimmed
};

// A word after the slash; several may mean the same.
struct CommandWord {
  std::string_view name;
  Action action;
};
std::span<const CommandWord> command_words();

struct CommandHelp {
  std::string_view words, arguments, meaning;
};

// True for lines that begin with a slash and a letter or '?'. A path such as "/usr/bin is …" counts as an
// unknown command; a space before it makes it a message.
bool is_command(std::string_view line);
SlashCommand parse_command(std::string_view line);

std::span<const CommandHelp> command_help();

// The value of /set think: "on", "off", "low", …
struct ThinkSetting {
  bool known = false;
  bool on = true;
  std::string effort;  // "low", "medium" or "high"; empty: the model's default
};
ThinkSetting parse_think(std::string_view text);

}  // namespace inferno::play
