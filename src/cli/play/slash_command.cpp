#include "cli/play/slash_command.h"

#include <array>
#include <cctype>

namespace inferno::play {
namespace {

struct Word {
  std::string_view name;
  Action action;
};

constexpr std::array words = {
    Word{"help", Action::help},        Word{"?", Action::help},     Word{"exit", Action::leave},
    Word{"bye", Action::leave},        Word{"quit", Action::leave}, Word{"clear", Action::clear},
    Word{"system", Action::system},    Word{"set", Action::set},    Word{"show", Action::show},
    Word{"load", Action::load},        Word{"save", Action::save},  Word{"open", Action::open},
    Word{"regen", Action::regenerate}, Word{"undo", Action::undo},  Word{"stats", Action::stats},
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
    CommandHelp{"/load", "MODEL", "switch to another model and start a new conversation"},
    CommandHelp{"/save", "FILE", "save the conversation as JSON"},
    CommandHelp{"/open", "FILE", "continue a saved conversation"},
    CommandHelp{"/regen", "", "generate another answer to the last message"},
    CommandHelp{"/undo", "", "remove the last message and its answer"},
    CommandHelp{"/stats", "", "show the token counts and speeds of this session"},
};

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

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
  for (const Word& word : words) {
    if (word.name == text.substr(0, end)) command.action = word.action;
  }
  return command;
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
