#include "cli/play/slash_command.h"

#include <array>
#include <cctype>

#include "base/utf8.h"

namespace inferno::play {
namespace {

constexpr std::array words = {
    CommandWord{"help", Action::help},        CommandWord{"?", Action::help},
    CommandWord{"exit", Action::leave},       CommandWord{"bye", Action::leave},
    CommandWord{"quit", Action::leave},       CommandWord{"clear", Action::clear},
    CommandWord{"system", Action::system},    CommandWord{"set", Action::set},
    CommandWord{"show", Action::show},        CommandWord{"load", Action::load},
    CommandWord{"save", Action::save},        CommandWord{"open", Action::open},
    CommandWord{"regen", Action::regenerate}, CommandWord{"undo", Action::undo},
    CommandWord{"stats", Action::stats},      CommandWord{"context", Action::context},
    CommandWord{"list", Action::list},        CommandWord{"copy", Action::copy},
    CommandWord{"edit", Action::edit},        CommandWord{"save!", Action::save_anyway},
};

constexpr std::array help = {
    CommandHelp{"/help, /?", "", "show this list"},
    CommandHelp{"/exit, /bye, /quit", "", "exit (also Ctrl-D)"},
    CommandHelp{"/clear", "", "start a new conversation and keep the system prompt"},
    CommandHelp{"/system", "[TEXT]",
                "set the system prompt and start a new conversation; without TEXT: show it"},
    CommandHelp{"/set", "[NAME VALUE]",
                "change a setting; without arguments: show all; VALUE default: reset it"},
    CommandHelp{"/show", "", "show the model, its chat format, the context in use and the settings"},
    CommandHelp{"/load", "MODEL",
                "switch to another model and start a new conversation; without MODEL: list them"},
    CommandHelp{"/save", "FILE", "save the conversation as JSON, or as Markdown if FILE ends with .md"},
    CommandHelp{"/save!", "FILE", "save it, and replace a file that is not a conversation"},
    CommandHelp{"/list", "", "show the conversations that were kept"},
    CommandHelp{"/open", "FILE or N", "continue a saved conversation, or number N of /list"},
    CommandHelp{"/edit", "[TEXT]", "write a message in $VISUAL or $EDITOR, beginning with TEXT"},
    CommandHelp{"/copy", "", "copy the last answer to the clipboard"},
    CommandHelp{"/regen", "", "generate another answer to the last message"},
    CommandHelp{"/undo", "", "undo the last exchange"},
    CommandHelp{"/context", "", "show how much of the context the conversation takes"},
    CommandHelp{"/stats", "", "show the token counts and speeds of this session"},
};

}  // namespace

bool is_command(std::string_view line) {
  return line.size() > 1 && line.front() == '/' &&
         (std::isalpha(static_cast<unsigned char>(line[1])) != 0 || line[1] == '?');
}

SlashCommand parse_command(std::string_view line) {
  const std::string_view text = trimmed(line).substr(1);
  const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  SlashCommand command = {.action = Action::unknown,
                          .name = "/" + std::string(text.substr(0, end)),
                          .arguments = std::string(trimmed(text.substr(end)))};
  for (const CommandWord& word : words) {
    if (word.name == text.substr(0, end)) command.action = word.action;
  }
  return command;
}

std::span<const CommandWord> command_words() {
  return words;
}

Argument argument_of(Action action) {
  switch (action) {
    case Action::system:
    case Action::edit:
    case Action::unknown: return Argument::text;
    case Action::set: return Argument::setting;
    case Action::load: return Argument::model;
    case Action::save:
    case Action::save_anyway: return Argument::new_file;
    case Action::open: return Argument::file;
    case Action::help:
    case Action::leave:
    case Action::clear:
    case Action::show:
    case Action::regenerate:
    case Action::undo:
    case Action::stats:
    case Action::context:
    case Action::list:
    case Action::copy: break;
  }
  return Argument::none;
}

std::span<const CommandHelp> command_help() {
  return help;
}

ThinkSetting parse_think(std::string_view text) {
  if (text == "on" || text == "true") return {.known = true, .on = true, .effort = {}};
  if (text == "off" || text == "false") return {.known = true, .on = false, .effort = {}};
  for (const std::string_view effort : {"low", "medium", "high"}) {
    if (text == effort) return {.known = true, .on = true, .effort = std::string(effort)};
  }
  return {};
}

}  // namespace inferno::play
