#include "cli/completion/completion.h"

#include <fmt/format.h>

#include <string_view>

#include "base/utf8.h"

namespace inferno::completion {
namespace {

// zsh ends a description at ']' and takes ':' for the end of a field.
std::string for_zsh_field(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    if (letter == '[' || letter == ']' || letter == ':' || letter == '\\') out += '\\';
    out += letter;
  }
  return out;
}

std::string joined(const std::vector<std::string>& words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> names_of(const std::vector<CommandDescription>& commands) {
  std::vector<std::string> names;
  for (const CommandDescription& command : commands) names.push_back(command.name);
  return names;
}

std::vector<std::string> names_of(const CommandDescription& command) {
  std::vector<std::string> names;
  for (const OptionDescription& option : command.options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

}  // namespace

std::string for_bash(const std::vector<CommandDescription>& commands) {
  std::string options, values;
  for (const CommandDescription& command : commands) {
    options +=
        fmt::format("    {}) words={} ;;\n", command.name, shell_quoted(joined(names_of(command), " ")));
    for (const OptionDescription& option : command.options) {
      if (!option.takes_value || option.names.empty()) continue;
      for (const std::string& name : option.names) {
        values += fmt::format("    {}:{}) words={} has_value=1 ;;\n", command.name, name,
                              shell_quoted(joined(option.choices, " ")));
      }
    }
  }
  return fmt::format(R"(# bash completion for inferno; written by `inferno completion bash`.
_inferno() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} words= has_value=
  COMPREPLY=()
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '{} --help --version --licenses' -- "$word"))
    return
  fi
  case "$command:$before" in
{}  esac
  if [ -n "$has_value" ]; then
    # Values that are not listed are files, as far as a shell can tell.
    [ -z "$words" ] || COMPREPLY=($(compgen -W "$words" -- "$word"))
    return
  fi
  case "$word" in -*) ;; *) return ;; esac
  case "$command" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _inferno inferno
)",
                     joined(names_of(commands), " "), values, options);
}

std::string for_zsh(const std::vector<CommandDescription>& commands) {
  std::string list, cases;
  for (const CommandDescription& command : commands) {
    list += fmt::format("    {}\n",
                        shell_quoted(fmt::format("{}:{}", command.name, for_zsh_field(command.help))));
    cases += fmt::format("    {})\n      _arguments -S \\\n", command.name);
    for (const OptionDescription& option : command.options) {
      for (const std::string& name : option.names) {
        std::string value;
        if (option.takes_value) {
          value = option.choices.empty() ? ":value:_files"
                                         : fmt::format(":value:({})", joined(option.choices, " "));
        }
        cases += fmt::format("        {} \\\n",
                             shell_quoted(fmt::format("*{}[{}]{}", name, for_zsh_field(option.help), value)));
      }
    }
    cases += "        '*:argument:_files'\n      ;;\n";
  }
  return fmt::format(R"(#compdef inferno
# zsh completion for inferno; written by `inferno completion zsh`.
_inferno() {{
  local -a commands
  commands=(
{}  )
  if (( CURRENT == 2 )); then
    _describe command commands
    _arguments '--help[show the help]' '--version[show the version]' '--licenses[show the licenses]'
    return
  fi
  local command=$words[2]
  shift words
  (( CURRENT-- ))
  case $command in
{}  esac
}}
_inferno "$@"
)",
                     list, cases);
}

std::string for_fish(const std::vector<CommandDescription>& commands) {
  std::string out =
      "# fish completion for inferno; written by `inferno completion fish`.\n"
      "complete -c inferno -n __fish_use_subcommand -l help -d 'Show the help'\n"
      "complete -c inferno -n __fish_use_subcommand -l version -d 'Show the version'\n"
      "complete -c inferno -n __fish_use_subcommand -l licenses -d 'Show the licenses'\n";
  for (const CommandDescription& command : commands) {
    out += fmt::format("complete -c inferno -f -n __fish_use_subcommand -a {} -d {}\n", command.name,
                       shell_quoted(command.help));
    for (const OptionDescription& option : command.options) {
      if (option.names.empty()) continue;
      out += fmt::format("complete -c inferno -n '__fish_seen_subcommand_from {}'", command.name);
      for (const std::string& name : option.names) {
        const bool is_long = name.starts_with("--");
        out += fmt::format(" {} {}", is_long ? "-l" : "-s", name.substr(is_long ? 2 : 1));
      }
      if (option.takes_value) out += option.choices.empty() ? " -r" : " -x";
      if (!option.choices.empty()) out += " -a " + shell_quoted(joined(option.choices, " "));
      out += " -d " + shell_quoted(option.help) + "\n";
    }
  }
  return out;
}

}  // namespace inferno::completion
