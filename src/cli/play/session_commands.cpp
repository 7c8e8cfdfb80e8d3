// What the slash commands of `play` do.
#include <fmt/format.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "cli/play/session.h"

namespace inferno::play {
namespace {

constexpr std::uint64_t max_conversation = std::uint64_t{64} << 20;

// "name value with spaces" to both parts.
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

}  // namespace

void Session::help() const {
  std::string text;
  for (const CommandHelp& line : command_help()) {
    text += fmt::format("  {:<20} {:<13} {}\n", line.words, line.arguments, line.meaning);
  }
  text +=
      "\n  \"\"\" begins a message of several lines, another \"\"\" ends it; Alt-Enter breaks a line "
      "anywhere\n"
      "  Ctrl-A/E start and end of the line, Ctrl-W/U/K erase a word, to the start, to the end, Ctrl-Y "
      "brings it back\n"
      "  Up/Down earlier messages, Ctrl-L clears the screen, Ctrl-C stops an answer, Ctrl-D leaves\n";
  console_.say(text);
}

void Session::set_system(const std::string& text) {
  if (text.empty()) {
    console_.say(talk_.system().empty() ? "no system prompt\n" : talk_.system() + "\n");
    return;
  }
  talk_.clear();
  talk_.set_system(text);
  console_.note(completes() ? "set, but this model completes text and has no place for it"
                            : "set; a new conversation begins");
}

void Session::set(const std::string& arguments) {
  auto [name, value] = first_word(arguments);
  if (name == "parameter") std::tie(name, value) = first_word(value);  // Ollama's way
  if (name.empty()) {
    show_settings();
  } else if (name == "system") {
    set_system(value);
  } else if (name == "nothink") {
    set_think("off");
  } else if (name == "think") {
    set_think(value.empty() ? "on" : value);
  } else if (name == "reasoning") {
    options_.shows_reasoning = on_or_off(name, value);
  } else if (name == "stats") {
    options_.shows_stats = on_or_off(name, value);
  } else {
    set_named(name, value);
  }
}

void Session::set_named(const std::string& name, const std::string& value) {
  SamplingSettings& settings = options_.request.settings;
  if (name == "logprobs" || name == "top_logprobs") refuse_logprobs();
  if (value.empty()) refuse(fmt::format("/set {}: no value", name), "/set lists the settings");
  // A quoted stop string may hold line breaks and spaces: "\n\n".
  const Json quoted = value.starts_with('"') ? Json::parse(value, nullptr, false) : Json();
  const bool known = value == "default"   ? set_sampling(settings, name, nullptr)
                     : quoted.is_string() ? set_sampling_text(settings, name, quoted.get<std::string>())
                                          : set_sampling_text(settings, name, value);
  if (!known) refuse(fmt::format("/set {}: there is no such setting", name), "/set lists them");
  const Json now = sampling_value(merged(model_->makers_settings(), settings), name);
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
  text += fmt::format("path      {}\n", chosen_.path.string());
  text += fmt::format("format    {}\n", completes() ? "none: completes text" : model_->chat()->name());
  text += fmt::format("context   {} of {} tokens in use\n", talk_.turns().empty() ? 0 : sequence_.size(),
                      model_->engine().context());
  text += fmt::format("system    {}\n", talk_.system().empty() ? "none" : talk_.system());
  text += fmt::format("turns     {}\n", talk_.turns().size());
  console_.say(text);
  show_settings();
}

void Session::show_settings() const {
  const SamplingSettings& own = options_.request.settings;
  std::string text;
  for (const SettingName& name : sampling_setting_names()) {
    const Json set = sampling_value(own, name.name);
    const Json makers = sampling_value(model_->makers_settings(), name.name);
    text += fmt::format("  {:<18} {}\n", name.name,
                        !set.is_null()      ? set.dump()
                        : !makers.is_null() ? makers.dump() + " (the model's own)"
                                            : "not set");
  }
  const auto& think = options_.request.think;
  const std::string& effort = options_.request.reasoning_effort;
  text += fmt::format("  {:<18} {}\n", "think",
                      !think           ? "not set"
                      : !*think        ? "off"
                      : effort.empty() ? "on"
                                       : effort);
  console_.say(text);
}

void Session::load_other(const std::string& name) {
  if (name.empty())
    refuse("/load: no model given", "/load MODEL, a path or one of the names below\n" + model_list(found_));
  const ChosenModel before = chosen_;
  const ChosenModel next = choose_model(name, found_);
  // One model in memory at a time.
  model_.reset();
  try {
    load(next);
  } catch (const Error&) {
    load(before);
    console_.note(fmt::format("still {}, in a new conversation", before.name));
    throw;
  }
  greet();
}

void Session::save(const std::string& file) const {
  if (file.empty()) refuse("/save: no file given", "/save FILE");
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << talk_.saved(model_->name()).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  out.close();
  if (!out) fail(ErrorKind::io, fmt::format("{}: cannot be written", file));
  console_.note(fmt::format("wrote {} turns to {}", talk_.turns().size(), file));
}

void Session::open(const std::string& file) {
  if (file.empty()) refuse("/open: no file given", "/open FILE");
  talk_.open(parse_json(read_file(file, max_conversation, Pipes::accept), file));
  console_.note(fmt::format("{} turns; the next message continues them", talk_.turns().size()));
}

void Session::regenerate() {
  const auto question = talk_.undo();
  if (!question) refuse("/regen: nothing was asked yet", "ask something");
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
  if (!talk_.undo()) refuse("/undo: there is nothing to take back", "ask something");
  console_.note(fmt::format("taken back; {} turns are left", talk_.turns().size()));
}

void Session::stats() const {
  const EngineStats engine = model_->engine().stats();
  console_.say(session_lines(tally_) +
               fmt::format("cache     {} of {} blocks free\n", engine.free_blocks, engine.blocks));
}

}  // namespace inferno::play
