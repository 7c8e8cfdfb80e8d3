#include "cli/config/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <variant>

#include "base/error.h"
#include "base/nearest.h"
#include "base/utf8.h"
#include "cli/commands/shared/argument_errors.h"
#include "hub/files.h"
#include "hub/names/model_name.h"

namespace inferno::config {
namespace {

constexpr std::string_view model_table = "model", alias_table = "aliases";

// Interprets one document; `place` is where a problem is.
class Interpreter {
 public:
  Interpreter(const std::filesystem::path& path, std::span<const CommandDescription> commands)
      : commands_(commands) {
    file_.path = path;
  }

  ConfigFile interpret(const toml::Document& document) {
    for (const toml::Table& table : document.tables) check_table(table);
    for (const toml::Entry& entry : document.entries) add(entry);
    check_twice();
    return std::move(file_);
  }

 private:
  [[noreturn]] void refuse(toml::Position at, const std::string& what, const std::string& why,
                           const std::string& next) const {
    fail(ErrorKind::invalid_request, fmt::format("{}:{}: {}", file_.place_of(at), at.column, what),
         {.why = why, .next = next});
  }

  [[noreturn]] void refuse_unknown(toml::Position at, const std::string& what, const std::string& key,
                                   std::span<const std::string> known, const std::string& next) const {
    const std::string meant = nearest(key, known);
    refuse(at, fmt::format("unknown {} {}", what, quote(key)),
           meant.empty() ? "" : fmt::format("did you mean {}?", meant), next);
  }

  const CommandDescription* command_of(const std::string& name) const {
    const auto found = std::ranges::find(commands_, name, &CommandDescription::name);
    return found == commands_.end() ? nullptr : &*found;
  }

  void check_table(const toml::Table& table) const {
    const std::string& first = table.path.front();
    if (first == model_table && table.path.size() <= 2) return;
    if (table.path.size() == 1 && (first == alias_table || command_of(first) != nullptr)) return;
    if (table.path.size() > 1 &&
        (first == model_table || first == alias_table || command_of(first) != nullptr))
      refuse(table.at, fmt::format("{} has no tables", first == model_table ? "a model" : first), "",
             "inferno help config");
    refuse_table(table.at, first);
  }

  [[noreturn]] void refuse_table(toml::Position at, const std::string& name) const {
    for (const CommandDescription& command : commands_) {
      if (std::ranges::find(command.second_names, name) != command.second_names.end())
        refuse(at, fmt::format("unknown table {}", quote(name)),
               fmt::format("{} is a second name of the command {}", name, command.name),
               fmt::format("write [{}]", command.name));
    }
    std::vector<std::string> known = {std::string(model_table), std::string(alias_table)};
    for (const CommandDescription& command : commands_) known.push_back(command.name);
    refuse_unknown(at, "table", name, known,
                   "a table is a command (inferno help lists them), model.\"NAME\" or aliases");
  }

  void add(const toml::Entry& entry) {
    const std::string& first = entry.path.front();
    if (first == alias_table) return add_alias(entry);
    if (first == model_table && entry.path.size() > 1) {
      if (entry.path.size() != 3)
        refuse(entry.key_at, "expected the name of a model and one option",
               entry.path.size() > 3 ? "a name with dots is written in quotes" : "",
               "write [model.\"qwen3\"] and below it temperature = 0.6");
      return add_setting(entry, Scope::model);
    }
    if (entry.path.size() == 1) return add_setting(entry, Scope::all);
    if (entry.path.size() > 2 || command_of(first) == nullptr) refuse_table(entry.key_at, first);
    add_setting(entry, Scope::command);
  }

  void add_setting(const toml::Entry& entry, Scope scope) {
    Setting setting = {.scope = scope,
                       .owner = scope == Scope::all ? "" : entry.path[entry.path.size() - 2],
                       .key = entry.path.back(),
                       .values = {},
                       .is_array = entry.is_array,
                       .at = entry.key_at,
                       .value_at = entry.value_at};
    for (const toml::Scalar& value : entry.values) setting.values.push_back(value.text);
    std::vector<std::string> known;
    bool is_known = false;
    for (const CommandDescription& command : commands_) {
      if (scope == Scope::command && command.name != setting.owner) continue;
      for (const OptionDescription& option : command.options) {
        for (const std::string& name : option.names) {
          if (name.starts_with("--") && name != "--help") known.push_back(name.substr(2));
        }
      }
      const OptionDescription* option = find_option(command, setting.key);
      if (option == nullptr) continue;
      is_known = true;
      check_kind(entry, *option);
    }
    if (!is_known)
      refuse_unknown(entry.key_at, "option", setting.key, known,
                     fmt::format("inferno help {}", scope == Scope::command ? setting.owner : "COMMAND"));
    refuse_misplaced(setting);
    file_.settings.push_back(std::move(setting));
  }

  // A secret in a file that is shown, copied and shared does not stay one.
  void refuse_misplaced(const Setting& setting) const {
    if (setting.key == "api-key")
      refuse(setting.at, "an API key does not belong in this file",
             "files like this one are copied and shown",
             "write api-key-file = \"FILE\", or set INFERNO_API_KEY");
    if (setting.scope == Scope::model && setting.key == model_table)
      refuse(setting.at, "the table of a model cannot name another one", "", "write it in [aliases]");
  }

  void check_kind(const toml::Entry& entry, const OptionDescription& option) const {
    const std::string& key = entry.path.back();
    const auto expect = [&](const std::string& what) {
      refuse(entry.value_at, fmt::format("{}: expected {}", quote(key), what), option.help,
             fmt::format("{} = {}", toml::written_key(key), option.takes_value ? "VALUE" : "true"));
    };
    const bool has_boolean =
        std::ranges::find(entry.values, toml::Kind::boolean, &toml::Scalar::kind) != entry.values.end();
    if (!option.takes_value && (entry.is_array || !has_boolean)) expect("true or false");
    if (option.takes_value && has_boolean) expect("a number or a text in quotes, found a boolean");
    if (entry.is_array && !option.takes_several) expect("one value, found an array");
    if (entry.is_array && entry.values.empty()) expect("at least one value, found none");
  }

  void add_alias(const toml::Entry& entry) {
    if (entry.path.size() != 2 || entry.is_array || entry.values.front().kind != toml::Kind::string)
      refuse(entry.key_at, "expected a short name and a model",
             "a name with dots or colons is written in quotes", "\"mine:4b\" = \"org/name:Q4_K_M\"");
    const std::string& name = entry.path.back();
    const std::string& model = entry.values.front().text;
    constexpr std::size_t max_name = 64;
    const bool is_plain = !name.empty() && name.size() <= max_name &&
                          name.find_first_of("/\\@ \t\r\n") == std::string::npos && name.front() != '-' &&
                          name.front() != '.' && name.front() != '~';
    if (!is_plain || name == "builtin")
      refuse(entry.key_at, fmt::format("{} cannot be a short name", quote(name)),
             "it has up to 64 letters, digits, dots, dashes and one colon, and is not builtin",
             "choose another");
    file_.aliases.push_back({lower_case(name), hub_name(model, entry.value_at), entry.key_at});
  }

  // A short name that is part of the program, or org/name[@REVISION][:QUANT].
  std::string hub_name(const std::string& model, toml::Position at) const {
    if (hub::find_alias(model) != nullptr) return model;
    hub::ModelName name;
    try {
      name = hub::parse_hub_name(model);
    } catch (const Error& error) {
      refuse(at, error.what(), error.advice().why, error.advice().next);
    }
    if (name.organization.empty() || !name.path.empty())
      refuse(at, fmt::format("{}: expected a model on the hub", quote(model)), "",
             "write org/name, org/name@REVISION or org/name:QUANT");
    return fmt::format("{}{}{}{}{}", name.id(), name.revision.empty() ? "" : "@", name.revision,
                       name.quant.empty() ? "" : ":", name.quant);
  }

  // TOML refuses a key that occurs twice; this refuses two names of one option.
  void check_twice() const {
    for (const CommandDescription& command : commands_) {
      std::set<std::tuple<Scope, std::string, const OptionDescription*>> seen;
      for (const Setting& setting : file_.settings) {
        const OptionDescription* option = find_option(command, setting.key);
        const bool concerns = setting.scope != Scope::command || setting.owner == command.name;
        if (option == nullptr || !concerns) continue;
        if (!seen.emplace(setting.scope, setting.owner, option).second)
          refuse(setting.at, fmt::format("{} is set twice", quote(option->label())),
                 fmt::format("{} is another name of the same option", quote(setting.key)),
                 "keep one of them");
      }
    }
  }

  std::span<const CommandDescription> commands_;
  ConfigFile file_;
};

std::string read_safely(const std::filesystem::path& path, bool is_trusted) {
  const auto refuse = [&](ErrorKind kind, const std::string& what, const std::string& why,
                          const std::string& next) {
    fail(kind, fmt::format("{}: {}", path.string(), what), {.why = why, .next = next});
  };
  const hub::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.number() < 0) {
    refuse(errno == ENOENT ? ErrorKind::not_found : ErrorKind::io,
           fmt::format("cannot read the configuration: {}", std::strerror(errno)), "",
           "correct INFERNO_CONFIG or the permissions of the file; an empty INFERNO_CONFIG means no file");
  }
  struct stat status{};
  if (::fstat(file.number(), &status) != 0 || !S_ISREG(status.st_mode))
    refuse(ErrorKind::io, "not a regular file", "", "an empty INFERNO_CONFIG means no file");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    refuse(ErrorKind::io, "other users can write to the configuration",
           "they could choose what your commands do", fmt::format("chmod go-w {}", path.string()));
  if (!is_trusted && status.st_uid != ::geteuid() && status.st_uid != 0)
    refuse(ErrorKind::io, "the configuration belongs to another user",
           "it could choose what your commands do",
           fmt::format("INFERNO_CONFIG={} if that is intended", path.string()));
  std::string text;
  char piece[65536];
  for (;;) {
    const ssize_t bytes = ::read(file.number(), piece, sizeof(piece));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) refuse(ErrorKind::io, std::strerror(errno), "", "");
    if (bytes <= 0) return text;
    text.append(piece, static_cast<std::size_t>(bytes));
    if (text.size() > toml::max_bytes) return text;  // which the reader refuses
  }
}

std::vector<hub::ModelName> meanings_of(const std::string& text) {
  std::vector<std::string> names = {text};
  if (const hub::Alias* alias = hub::find_alias(text)) {
    names = {alias->original};
    if (!alias->quantized.empty()) names.push_back(alias->quantized);
  }
  std::vector<hub::ModelName> meanings;
  for (const std::string& name : names) {
    try {
      const hub::ParsedName parsed = hub::parse_model_name(name);
      if (const auto* one = std::get_if<hub::ModelName>(&parsed)) meanings.push_back(*one);
    } catch (const Error&) {
      // A path, or a name in another store: it means only itself.
      continue;
    }
  }
  return meanings;
}

}  // namespace

std::string ConfigFile::place_of(const toml::Position& at) const {
  return fmt::format("{}:{}", path.string(), at.line);
}

ConfigFile interpret(const toml::Document& document, const std::filesystem::path& path,
                     std::span<const CommandDescription> commands) {
  return Interpreter(path, commands).interpret(document);
}

ConfigFile read_config(const std::filesystem::path& path, bool is_trusted,
                       std::span<const CommandDescription> commands) {
  return interpret(toml::parse(read_safely(path, is_trusted), path.string()), path, commands);
}

void check_values(const ConfigFile& file, std::span<const CommandDescription> commands,
                  const ProblemOf& problem_of) {
  for (const Setting& setting : file.settings) {
    for (const CommandDescription& command : commands) {
      if (setting.scope == Scope::command && setting.owner != command.name) continue;
      if (find_option(command, setting.key) == nullptr) continue;
      const std::string problem = problem_of(command.name, setting.key, setting.values);
      if (problem.empty()) continue;
      fail(ErrorKind::invalid_request,
           fmt::format("{}:{}: {}", file.place_of(setting.value_at), setting.value_at.column, problem),
           {.why = fmt::format("it is an option of inferno {}", command.name),
            .next = setting.scope == Scope::command
                        ? fmt::format("inferno help {}", command.name)
                        : "correct it, or write it in the table of the commands that it is for"});
    }
  }
}

std::vector<hub::Alias> aliases_of(const ConfigFile& file) {
  std::vector<hub::Alias> aliases;
  for (const OwnAlias& own : file.aliases) {
    const hub::Alias* other = hub::find_alias(own.model);
    hub::Alias alias =
        other != nullptr ? *other : hub::Alias{.name = {}, .original = own.model, .quantized = {}};
    alias.name = own.name;
    aliases.push_back(std::move(alias));
  }
  return aliases;
}

bool means_model(const std::string& model, const std::string& name) {
  if (lower_case(model) == lower_case(name)) return true;
  for (const hub::ModelName& table : meanings_of(model)) {
    for (const hub::ModelName& typed : meanings_of(name)) {
      const bool is_same = !table.organization.empty() && lower_case(table.id()) == lower_case(typed.id());
      const bool has_revision = table.revision.empty() || table.revision == typed.revision;
      const bool has_quant = table.quant.empty() || lower_case(table.quant) == lower_case(typed.quant);
      if (is_same && has_revision && has_quant) return true;
    }
  }
  return false;
}

const OptionDescription* find_option(const CommandDescription& command, const std::string& key) {
  const std::string name = "--" + key;
  if (name == "--help") return nullptr;
  for (const OptionDescription& option : command.options) {
    if (std::ranges::find(option.names, name) != option.names.end()) return &option;
  }
  return nullptr;
}

}  // namespace inferno::config
