#include "cli/play/session.h"

#include <fmt/format.h>

#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "base/sizes.h"
#include "cli/play/answer_view.h"
#include "cli/play/model_menu.h"
#include "cli/terminal/line_editor.h"
#include "cli/terminal/report_error.h"
#include "service/answer.h"
#include "service/kept_tokens.h"

namespace inferno::play {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n") == std::string_view::npos;
}

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

}  // namespace

void refuse_logprobs() {
  fail(ErrorKind::invalid_request, "logprobs: not available in play",
       {.why = {}, .next = "inferno generate --json --logprobs N"});
}

Session::Session(PlayOptions options, Console& console, const Catalogue& catalogue,
                 std::optional<ResolvedModel> model)
    : options_(std::move(options)), console_(console), catalogue_(catalogue), chosen_(std::move(model)) {
  transcript_.set_system(options_.system);
  if (options_.request.settings.logprobs) refuse_logprobs();
}

int Session::run() {
  if (!choose()) return exit_code_;
  load(*chosen_);
  greet();
  while (has_reader_) {
    if (!handle(console_.read({.prompts = console_.prompts(),
                               .is_remembered = true,
                               .was_interrupted = [this] { return interrupt_->received() != 0; }})))
      break;
  }
  return exit_code_;
}

bool Session::choose() {
  if (chosen_) return true;
  std::vector<FoundModel> complete;
  if (console_.is_interactive()) complete = catalogue_.inventory().models;
  std::erase_if(complete, [](const FoundModel& model) { return !model.is_complete(); });
  if (complete.size() < 2) {
    chosen_ = catalogue_.builtin();
    return true;
  }
  console_.say("models on this machine:\n" + model_menu(complete));
  while (true) {
    terminal::Prompts prompts = console_.prompts();
    prompts.first = "number or name: ";
    const terminal::Entry entry =
        console_.read({.prompts = prompts, .is_remembered = false, .was_interrupted = [] { return false; }});
    if (entry.kind == terminal::EntryKind::interrupted) exit_code_ = interrupted_code;
    if (entry.kind != terminal::EntryKind::text) return false;
    if (const FoundModel* model = choose_from_menu(entry.text, complete)) {
      chosen_ = catalogue_.resolve(*model);
      return true;
    }
    console_.say(fmt::format("expected a number from 1 to {} or a name from the list; Ctrl-D exits\n",
                             complete.size()));
  }
}

void Session::load(const ResolvedModel& chosen) {
  // Without a watcher Ctrl-C ends the program, because loading cannot be cancelled.
  interrupt_.reset();
  model_ = load_text_model(chosen, options_.load);
  interrupt_.emplace();
  chosen_ = chosen;
  transcript_.clear();
  sequence_.clear();
}

void Session::greet() const {
  console_.note(fmt::format("{} ({}), context of {} tokens, loaded in {:.1f} s", model_->name(),
                            model_->architecture(), model_->engine().context(), model_->load_seconds()));
  if (completes_text()) {
    console_.note(
        "this model has no chat template, so it completes text: it continues what you type; your next entry "
        "is appended to the text until the model ends it, or /clear starts a new one");
    if (!transcript_.system().empty())
      console_.note("the system prompt is ignored, because text completion has none");
  }
  TextRequest request = options_.request;
  request.messages = first_messages(transcript_.system(), "hello");
  for (const std::string& note : notes_on_effects(*model_, request)) console_.note("note: " + note);
  if (console_.is_interactive())
    console_.note("/help lists the commands, Ctrl-C stops an answer, Ctrl-D exits");
}

bool Session::handle(const terminal::Entry& entry) {
  if (entry.kind == terminal::EntryKind::end) return false;
  interrupt_->clear();
  if (entry.kind == terminal::EntryKind::interrupted) {
    if (!console_.is_interactive()) exit_code_ = interrupted_code;
    if (entry.text.empty() && console_.is_interactive()) console_.note("to exit, type /exit or press Ctrl-D");
    return console_.is_interactive();
  }
  if (is_blank(entry.text)) return true;
  try {
    if (is_command(entry.text)) return run_command(parse_command(entry.text));
    ask(terminal::without_quotes(entry.text));
  } catch (const Error& error) {
    // A failed turn does not end the conversation; a broken device does.
    if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::internal) throw;
    console_.say(describe(error));
    if (!console_.is_interactive() && exit_code_ == 0) exit_code_ = exit_code(error.kind());
  }
  if (interrupt_->received() == 0 || console_.is_interactive()) return true;
  exit_code_ = interrupted_code;
  return false;
}

bool Session::run_command(const SlashCommand& command) {
  switch (command.action) {
    case Action::leave: return false;
    case Action::help: help(); break;
    case Action::clear:
      transcript_.clear();
      console_.note("started a new conversation");
      break;
    case Action::system: set_system(command.arguments); break;
    case Action::set: set(command.arguments); break;
    case Action::show: show(); break;
    case Action::load: load_other(command.arguments); break;
    case Action::save: save(command.arguments); break;
    case Action::open: open(command.arguments); break;
    case Action::regenerate: regenerate(); break;
    case Action::undo: undo(); break;
    case Action::stats: show_stats(); break;
    case Action::unknown:
      console_.say(fmt::format(
          "{} is not a command; /help lists the commands, and a space before the slash makes it a message\n",
          command.name));
      break;
  }
  return true;
}

void Session::ask(const std::string& question) {
  TextRequest request = options_.request;
  transcript_.ask(question);
  try {
    if (completes_text()) {
      request.prompt = transcript_.text();
    } else {
      request.messages = transcript_.messages();
    }
    answer(request);
  } catch (const Error&) {
    transcript_.undo();  // the failed question is not part of the conversation
    throw;
  }
}

void Session::answer(const TextRequest& request) {
  AnswerView view({.is_terminal = console_.writes_to_terminal(),
                   .has_colour = console_.has_colour(),
                   .shows_reasoning = options_.shows_reasoning.value_or(console_.writes_to_terminal())});
  PreparedRequest prepared = model_->prepare(request);
  prepared.generation.prompt = with_kept_tokens(model_->tokenizer(), prepared.generation.prompt, sequence_);
  std::vector<TokenId> sequence = prepared.generation.prompt;
  const auto interrupted = [this] { return interrupt_->received() != 0; };
  const Answer answer = write_answer(*model_, std::move(prepared), interrupted, [&](const ReplyPart& part) {
    has_reader_ = has_reader_ && console_.write(view.show(part));
    return has_reader_;
  });
  has_reader_ = has_reader_ && console_.write(view.finish());
  for (const std::string& warning : answer.warnings) console_.note("note: " + warning);
  transcript_.answer({.question = {},
                      .answer = answer.text,
                      .reasoning = answer.reasoning,
                      .tool_calls = answer.tool_calls,
                      .finish_reason = answer.finish_reason});
  stats_.add(answer);
  for (const Sampled& sampled : answer.tokens) sequence.push_back(sampled.token);
  sequence_ = std::move(sequence);
  if (options_.shows_stats && has_reader_) console_.note(answer_line(answer));
}

void Session::help() const {
  std::string text;
  for (const CommandHelp& line : command_help()) {
    text += fmt::format("  {:<20} {:<13} {}\n", line.words, line.arguments, line.meaning);
  }
  text +=
      "\n  \"\"\" starts and ends a message of several lines; Alt-Enter inserts a line break\n"
      "  Ctrl-A/E: start/end of the line; Ctrl-W/U/K: delete a word/to the start/to the end; Ctrl-Y: insert "
      "the "
      "deleted text\n"
      "  Up/Down: earlier messages; Ctrl-L: clear the screen; Ctrl-C: stop the answer; Ctrl-D: exit\n";
  console_.say(text);
}

void Session::set_system(const std::string& text) {
  if (text.empty()) {
    console_.say(transcript_.system().empty() ? "no system prompt\n" : transcript_.system() + "\n");
    return;
  }
  transcript_.clear();
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
  // A quoted stop string may contain line breaks and spaces: "\n\n".
  const Json quoted = value.starts_with('"') ? Json::parse(value, nullptr, false) : Json();
  const bool known = value == "default"   ? set_sampling(settings, name, nullptr)
                     : quoted.is_string() ? set_sampling_text(settings, name, quoted.get<std::string>())
                                          : set_sampling_text(settings, name, value);
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
  text += fmt::format("path      {}\n", model_->path().string());
  text += fmt::format("format    {}\n", completes_text() ? "none: completes text" : model_->chat()->name());
  text += fmt::format("context   {} of {} tokens in use\n",
                      transcript_.turns().empty() ? 0 : sequence_.size(), model_->engine().context());
  text += fmt::format("system    {}\n", transcript_.system().empty() ? "none" : transcript_.system());
  text += fmt::format("turns     {}\n", transcript_.turns().size());
  console_.say(text);
  show_settings();
}

void Session::show_settings() const {
  const SamplingSettings& own = options_.request.settings;
  std::string text;
  for (const SettingName& name : sampling_setting_names()) {
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
  console_.say(text);
}

void Session::load_other(const std::string& name) {
  if (name.empty())
    refuse("/load: no model given",
           "/load MODEL, with a path or one of these names:\n" + model_menu(catalogue_.inventory().models));
  const ResolvedModel before = *chosen_;
  const ResolvedModel next = catalogue_.resolve(name);
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

void Session::save(const std::string& file) const {
  if (file.empty()) refuse("/save: no file given", "/save FILE");
  std::ofstream out(file, std::ios::binary | std::ios::trunc);
  out << transcript_.saved(model_->name()).dump(2, ' ', false, Json::error_handler_t::replace) << "\n";
  out.close();
  if (!out) fail(ErrorKind::io, fmt::format("{}: cannot write the file", file));
  console_.note(fmt::format("wrote {} to {}", counted(transcript_.turns().size(), "turn"), file));
}

void Session::open(const std::string& file) {
  if (file.empty()) refuse("/open: no file given", "/open FILE");
  transcript_.open(parse_json(read_file(file, max_conversation, Pipes::accept), file));
  console_.note(fmt::format("opened {}; the next message continues the conversation",
                            counted(transcript_.turns().size(), "turn")));
}

void Session::regenerate() {
  const auto question = transcript_.undo();
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
  console_.note(fmt::format("removed the last turn, {} left", counted(transcript_.turns().size(), "turn")));
}

void Session::show_stats() const {
  const EngineStats engine = model_->engine().stats();
  console_.say(session_lines(stats_) +
               fmt::format("cache     {} of {} blocks free\n", engine.free_blocks, engine.blocks));
}

}  // namespace inferno::play
