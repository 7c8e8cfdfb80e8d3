// The slash commands of `play`, other than those that answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "catalogue/builtin_model.h"
#include "cli/play/answer_view.h"
#include "cli/play/model_menu.h"
#include "cli/play/session.h"
#include "cli/terminal/input/line_editor.h"
#include "cli/terminal/markdown/word_wrap.h"
#include "text/characters.h"

namespace inferno::play {
namespace {

constexpr std::uint64_t max_conversation = std::uint64_t{64} << 20;

// Splits "name value with spaces" after the first word.
std::pair<std::string, std::string> first_word(const std::string& text) {
  const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const std::size_t rest = std::min(text.find_first_not_of(" \t", end), text.size());
  return {text.substr(0, end), text.substr(rest)};
}

[[noreturn]] void refuse(const std::string& what, const std::string& next) {
  fail(ErrorKind::invalid_request, what, {.why = {}, .next = next});
}

bool on_or_off(const std::string& name, const std::string& value) {
  if (value == "on" || value == "show") return true;
  if (value == "off" || value == "hide") return false;
  refuse(fmt::format("{}: expected on or off, found \"{}\"", name, value), "/set " + name + " on");
}

constexpr std::size_t max_listed = 20;

std::string base64(std::string_view bytes) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    std::uint32_t group = 0;
    const std::size_t count = std::min<std::size_t>(3, bytes.size() - at);
    for (std::size_t i = 0; i < 3; ++i)
      group = group << 8 | (i < count ? static_cast<unsigned char>(bytes[at + i]) : 0u);
    for (std::size_t i = 0; i < 4; ++i) text += i <= count ? digits[group >> (18 - 6 * i) & 63] : '=';
  }
  return text;
}

// A label, and beside it, or below it on a narrow screen, what it means.
std::string help_entry(std::string label, const std::string& meaning, int screen_columns) {
  constexpr int label_columns = 35, narrow = 70;
  const bool is_narrow = screen_columns > 0 && screen_columns < narrow;
  const int indent = is_narrow ? 6 : label_columns;
  label = "  " + std::string(trimmed(label));
  std::string text = terminal::wrapped(meaning, screen_columns > 0 ? screen_columns - indent : 0);
  const std::string margin(static_cast<std::size_t>(indent), ' ');
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1))
    text.insert(at + 1, margin);
  const int room = label_columns - columns(label);
  const std::string between =
      is_narrow ? "\n" + margin : std::string(static_cast<std::size_t>(std::max(room, 1)), ' ');
  return label + between + text + "\n";
}

struct KeyHelp {
  const char *keys, *meaning;
};

constexpr std::array key_help = {
    KeyHelp{"\"\"\"", "starts and ends a message of several lines; Alt-Enter inserts a line break"},
    KeyHelp{"@FILE, @\"MY FILE\"", "put a text file into the message; \\@ is an at sign"},
    KeyHelp{"Tab", "complete a command, file or model; twice: list what is possible"},
    KeyHelp{"Up, Down; Ctrl-R", "earlier messages; search in them"},
    KeyHelp{"Ctrl-A, Ctrl-E", "start and end of the line"},
    KeyHelp{"Ctrl-W, Ctrl-U, Ctrl-K; Ctrl-Y",
            "delete a word, to the start, to the end; insert what was deleted"},
    KeyHelp{"Ctrl-L", "clear the screen"},
    KeyHelp{"Ctrl-C", "stop the answer"},
    KeyHelp{"Ctrl-D", "exit"},
};

}  // namespace

std::vector<std::string> setting_names() {
  std::vector<std::string> names = {"think", "reasoning", "stats", "system"};
  for (const SettingName& name : sampling_setting_names()) {
    if (name.name != "logprobs") names.emplace_back(name.name);  // refused by /set
  }
  return names;
}

bool Session::run_command(const SlashCommand& command) {
  if (!command.arguments.empty() && argument_of(command.action) == Argument::none) {
    refuse(fmt::format("{}: takes no arguments, found {}", command.name, quote(command.arguments)),
           command.name + " alone; a space before the slash makes it a message");
  }
  switch (command.action) {
    case Action::leave: return false;
    case Action::help: help(); break;
    case Action::clear:
      start_over();
      console_.note("started a new conversation");
      break;
    case Action::system: set_system(terminal::without_quotes(command.arguments)); break;
    case Action::set: set(command.arguments); break;
    case Action::show: show(); break;
    case Action::load: load_other(command.arguments); break;
    case Action::save: save(command.arguments, /*replaces_any=*/false); break;
    case Action::save_anyway: save(command.arguments, /*replaces_any=*/true); break;
    case Action::open: open(command.arguments); break;
    case Action::regenerate: regenerate(); break;
    case Action::undo: undo(); break;
    case Action::stats: show_stats(); break;
    case Action::context: show_context(); break;
    case Action::list: list_kept(); break;
    case Action::copy: copy(); break;
    case Action::edit: edit(terminal::without_quotes(command.arguments)); break;
    case Action::unknown:
      refuse(fmt::format("{}: not a command", command.name),
             "/help lists the commands; a space before the slash makes it a message");
  }
  return true;
}

void Session::help() const {
  const int columns = console_.columns();
  std::string text;
  for (const CommandHelp& line : command_help()) {
    text += help_entry(fmt::format("{} {}", line.words, line.arguments), std::string(line.meaning), columns);
  }
  text += '\n';
  for (const KeyHelp& line : key_help) text += help_entry(line.keys, line.meaning, columns);
  console_.say(text);
}

void Session::start_over() {
  transcript_.clear();
  kept_.begin();
  is_in_sequence_ = false;
  warned_of_context_ = false;
}

void Session::set_system(const std::string& text) {
  if (text.empty()) {
    console_.say(transcript_.system().empty() ? "no system prompt\n" : transcript_.system() + "\n");
    return;
  }
  start_over();
  transcript_.set_system(text);
  console_.note(completes_text() ? "system prompt set, but ignored: this model completes text"
                                 : "system prompt set; started a new conversation");
}

void Session::set(const std::string& arguments) {
  auto [name, value] = first_word(arguments);
  if (name == "parameter") std::tie(name, value) = first_word(value);  // as Ollama spells it
  if (name.empty()) {
    show_settings();
  } else if (name == "system") {
    set_system(value);
  } else if (name == "nothink") {
    if (!value.empty()) refuse("/set nothink: takes no value", "/set think " + value);
    set_think("off");
  } else if (name == "think") {
    set_think(value.empty() ? "on" : value);
  } else if (name == "reasoning") {
    options_.shows_reasoning = on_or_off(name, value);
    console_.note(fmt::format("reasoning is {}", *options_.shows_reasoning ? "shown" : "hidden"));
  } else if (name == "stats") {
    options_.shows_stats = on_or_off(name, value);
    console_.note(fmt::format("statistics are {}", options_.shows_stats ? "shown" : "hidden"));
  } else {
    set_named(name, value);
  }
}

void Session::set_named(const std::string& name, const std::string& value) {
  SamplingSettings& settings = options_.request.settings;
  if (name == "logprobs" || name == "top_logprobs") refuse_logprobs();
  if (value.empty()) refuse(fmt::format("/set {}: no value", name), "/set lists the settings");
  // A quoted stop string may contain line breaks and spaces: "\n\n".
  const Json quoted = value.starts_with('"') ? Json::parse(value, nullptr, false) : Json();
  bool known = false;
  try {
    known = value == "default"   ? set_sampling(settings, name, nullptr)
            : quoted.is_string() ? set_sampling_text(settings, name, quoted.get<std::string>())
                                 : set_sampling_text(settings, name, value);
  } catch (const Error& error) {
    refuse(error.what(), fmt::format("/set {} default resets it", name));
  }
  if (!known) refuse(fmt::format("/set {}: unknown setting", name), "/set lists the settings");
  const Json now = sampling_value(merged(model_->recommended_settings(), settings), name);
  console_.note(fmt::format("{} is {}", name, now.is_null() ? "not set" : now.dump()));
}

void Session::set_think(const std::string& value) {
  TextRequest& request = options_.request;
  if (value == "default") {
    request.think.reset();
    request.reasoning_effort.clear();
  } else {
    const ThinkSetting think = parse_think(value);
    if (!think.known) {
      refuse(fmt::format("think: expected on, off, low, medium, high or default, found \"{}\"", value),
             "/set think off");
    }
    request.think = think.on;
    request.reasoning_effort = think.effort;
  }
  console_.note(fmt::format("think is {}", value));
}

void Session::show() const {
  std::string text = fmt::format("model     {} ({})\n", model_->name(), model_->architecture());
  text += fmt::format("path      {}\n",
                      chosen_->name == builtin_name ? "part of the program" : model_->path().string());
  const std::string format = completes_text() ? "" : std::filesystem::path(model_->chat()->name()).filename();
  text += fmt::format("format    {}\n", completes_text() ? "none: completes text" : format);
  text += fmt::format("context   {} tokens in use\n", context_use().text());
  text += fmt::format("system    {}\n", transcript_.system().empty() ? "none" : transcript_.system());
  text += fmt::format("turns     {}\n", transcript_.turns().size());
  console_.say(text);
  show_settings();
}

void Session::show_settings() const {
  const SamplingSettings& own = options_.request.settings;
  std::string text;
  for (const SettingName& name : sampling_setting_names()) {
    if (name.name == "logprobs") continue;  // refused by /set
    const Json set = sampling_value(own, name.name);
    const Json makers = sampling_value(model_->recommended_settings(), name.name);
    text += fmt::format("  {:<18} {}\n", name.name,
                        !set.is_null()      ? set.dump()
                        : !makers.is_null() ? makers.dump() + " (model default)"
                                            : "not set");
  }
  const auto& think = options_.request.think;
  const std::string& effort = options_.request.reasoning_effort;
  text += fmt::format("  {:<18} {}\n", "think",
                      !think           ? "not set"
                      : !*think        ? "off"
                      : effort.empty() ? "on"
                                       : effort);
  const bool shows_reasoning = options_.shows_reasoning.value_or(console_.writes_to_terminal());
  text += fmt::format("  {:<18} {}\n", "reasoning", shows_reasoning ? "shown" : "hidden");
  text += fmt::format("  {:<18} {}\n", "stats", options_.shows_stats ? "shown" : "hidden");
  console_.say(text);
}

ResolvedModel Session::named_or_numbered(const std::string& name) const {
  if (name.find_first_not_of("0123456789") != std::string::npos) return catalogue_.resolve(name);
  const std::vector<FoundModel> models = complete_models(catalogue_.inventory());
  if (const FoundModel* model = choose_from_menu(name, models)) return catalogue_.resolve(*model);
  refuse(fmt::format("/load {}: expected a number from 1 to {}", name, models.size()),
         "/load lists the models");
}

void Session::load_other(const std::string& name) {
  if (name.empty() && !console_.is_interactive())
    refuse("/load: no model given", "/load MODEL, with a path or a name");
  if (name.empty()) {
    console_.say("models on this machine:\n" + model_menu(complete_models(catalogue_.inventory())));
    console_.note("/load NAME or /load NUMBER switches to one of them");
    return;
  }
  const ResolvedModel before = *chosen_;
  const ResolvedModel next = named_or_numbered(name);
  // Memory may not hold two models.
  model_.reset();
  try {
    load(next);
  } catch (const Error&) {
    load(before);
    console_.note(fmt::format("still using {}, in a new conversation", before.name));
    throw;
  }
  greet();
}

void Session::save(const std::string& file, bool replaces_any) {
  if (file.empty()) refuse("/save: no file given", "/save FILE");
  const std::filesystem::path path = console_.path(file);
  const std::string objection = replaces_any ? "" : saved_.objection(path);
  if (!objection.empty()) {
    refuse(fmt::format("{}: {}", file, objection),
           fmt::format("choose another name, or replace it with /save! {}", file));
  }
  save_conversation(transcript_, model_->name(), path);
  saved_.remember(path);
  console_.note(fmt::format("wrote {} to {}", counted(transcript_.turns().size(), "turn"), file));
}

void Session::open(const std::string& file) {
  if (file.empty()) refuse("/open: no file given", "/open FILE, or /open N with a number that /list shows");
  if (file.find_first_not_of("0123456789") == std::string::npos && file.size() < 6)
    return open_kept(static_cast<std::size_t>(std::stoi(file)));
  const std::filesystem::path path = console_.path(file);
  std::error_code ignored;
  if (std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found) {
    fail(ErrorKind::not_found, fmt::format("{}: no such file", file),
         {.why = {}, .next = "/list shows the conversations that were kept"});
  }
  const Json saved = parse_json(read_file(path, max_conversation, Pipes::accept), file);
  transcript_.open(saved);
  kept_.begin();
  sequence_.clear();
  is_in_sequence_ = false;
  warned_of_context_ = false;
  const std::string model = saved.contains("model") && saved.at("model").is_string() ? saved.at("model") : "";
  if (!model.empty() && model != model_->name())
    console_.note(fmt::format("this conversation was with {}; {} continues it", model, model_->name()));
  console_.note(fmt::format("opened {}; the next message continues the conversation",
                            counted(transcript_.turns().size(), "turn")));
}

void Session::list_kept() const {
  const auto kept = kept_.newest(max_listed);
  if (kept.empty()) refuse("/list: no conversation is kept yet", "type a message first");
  std::string text;
  for (std::size_t at = 0; at < kept.size(); ++at) {
    const std::string begun = kept[at].begun.empty() ? "" : kept[at].begun + ", ";
    text += fmt::format("{:>4}  {}  ({}{}, {})\n", at + 1, kept[at].title, begun, kept[at].model,
                        counted(kept[at].turns, "turn"));
  }
  console_.say(text + "/open N continues one of them\n");
}

void Session::open_kept(std::size_t number) {
  const auto kept = kept_.newest(max_listed);
  if (kept.empty()) {
    console_.note("no conversation is kept yet; this one is new");
    return;
  }
  if (number < 1 || number > kept.size())
    refuse(fmt::format("/open {}: expected 1 to {}", number, kept.size()), "/list shows the conversations");
  const KeptConversation& chosen = kept[number - 1];
  open(chosen.file.string());
  kept_.go_on_with(chosen.file);
  if (!console_.is_interactive()) return;  // the output has only new answers
  const Turn& last = transcript_.turns().back();
  console_.note(fmt::format("you: {}", last.question));
  AnswerView view(view_options());
  const std::string shown = view.show(ContentDelta{last.answer});
  console_.write(shown + view.finish());
}

// OSC 52: the terminal puts the text into the clipboard, also over ssh.
void Session::copy() const {
  if (transcript_.turns().empty()) refuse("/copy: there is no answer yet", "type a message first");
  if (!console_.writes_to_terminal()) refuse("/copy: this output is not a terminal", "/save FILE");
  const std::string& answer = transcript_.turns().back().answer;
  console_.write("\x1b]52;c;" + base64(answer) + "\x07");
  console_.note(
      fmt::format("copied {} to the clipboard, if the terminal allows it", human_size(answer.size())));
}

void Session::edit(const std::string& text) {
  const std::string message = console_.edited(text);
  if (trimmed(message).empty()) {
    console_.note("the message is empty; nothing was sent");
    return;
  }
  console_.say(message + "\n");
  send(message);
}

void Session::regenerate() {
  const auto question = transcript_.undo();
  is_in_sequence_ = false;
  if (!question) refuse("/regen: there is no message yet", "type a message first");
  // The same seed would give the same answer.
  const auto seed = options_.request.settings.seed;
  options_.request.settings.seed.reset();
  try {
    ask(*question);
  } catch (const Error&) {
    options_.request.settings.seed = seed;
    throw;
  }
  options_.request.settings.seed = seed;
}

void Session::undo() {
  if (!transcript_.undo()) refuse("/undo: there is no message yet", "type a message first");
  is_in_sequence_ = false;
  console_.note(fmt::format("undone, {} left", counted(transcript_.turns().size(), "turn")));
}

void Session::show_context() const {
  const ContextUse use = context_use();
  std::string text = fmt::format("context   {} tokens in use ({} %)\n", use.text(),
                                 use.limit == 0 ? 0 : use.tokens * 100 / use.limit);
  text += fmt::format("turns     {}, of which the model sees {}\n", transcript_.turns().size(),
                      transcript_.turns().size() - transcript_.dropped());
  text += fmt::format("full      {}\n", options_.on_full == OnFull::drop ? "the oldest turns are dropped"
                                                                         : "an error; /clear starts over");
  console_.say(text);
}

void Session::show_stats() const {
  const EngineStats engine = model_->engine().stats();
  console_.say(session_lines(stats_) +
               fmt::format("cache     {} of {} blocks free\n", engine.free_blocks, engine.blocks));
}

}  // namespace inferno::play
