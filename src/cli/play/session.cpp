#include "cli/play/session.h"

#include <fmt/format.h>

#include "base/error.h"
#include "cli/answer.h"
#include "cli/kept_tokens.h"
#include "cli/model_resolution.h"
#include "cli/play/answer_view.h"
#include "cli/terminal/line_editor.h"
#include "cli/terminal/report_error.h"

namespace inferno::play {
namespace {

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\n") == std::string_view::npos;
}

}  // namespace

void refuse_logprobs() {
  fail(ErrorKind::invalid_request, "logprobs: play does not show them",
       {.why = {}, .next = "inferno generate --json --logprobs N"});
}

Session::Session(PlayOptions options, Console& console, std::vector<FoundModel> found)
    : options_(std::move(options)), console_(console), found_(std::move(found)) {
  talk_.set_system(options_.system);
  if (options_.request.settings.logprobs) refuse_logprobs();
}

int Session::run() {
  if (!choose()) return exit_code_;
  load(chosen_);
  greet();
  while (is_read_) {
    if (!take(console_.read({.prompts = console_.prompts(), .is_remembered = true, .was_interrupted = [this] {
                               return interrupt_->received() != 0;
                             }})))
      break;
  }
  return exit_code_;
}

bool Session::choose() {
  std::vector<FoundModel> whole = found_;
  std::erase_if(whole, [](const FoundModel& model) { return !model.is_complete(); });
  if (!options_.model.empty() || whole.size() < 2 || !console_.is_interactive()) {
    chosen_ = choose_model(options_.model, found_);
    return true;
  }
  console_.say("models on this machine:\n" + model_list(whole));
  while (true) {
    terminal::Prompts prompts = console_.prompts();
    prompts.first = "number or name: ";
    const terminal::Entry entry =
        console_.read({.prompts = prompts, .is_remembered = false, .was_interrupted = [] { return false; }});
    if (entry.kind == terminal::EntryKind::interrupted) exit_code_ = interrupted_code;
    if (entry.kind != terminal::EntryKind::text) return false;
    if (const FoundModel* model = chosen_model(entry.text, whole)) {
      chosen_ = {model->name, model->path};
      return true;
    }
    console_.say(
        fmt::format("expected a number from 1 to {} or one of the names; Ctrl-D leaves\n", whole.size()));
  }
}

void Session::load(const ChosenModel& chosen) {
  // Without it Ctrl-C ends the program, as it should while nothing can be stopped yet.
  interrupt_.reset();
  model_ = std::make_unique<TextModel>(chosen.path, chosen.name, options_.text_model);
  interrupt_.emplace();
  chosen_ = chosen;
  talk_.clear();
  sequence_.clear();
}

void Session::greet() const {
  console_.note(fmt::format("{} ({}), context of {} tokens, loaded in {:.1f} s", model_->name(),
                            model_->architecture(), model_->engine().context(), model_->load_seconds()));
  if (completes()) {
    console_.note(
        "this model has no chat template, so it completes text: what you type is a beginning, and it goes on "
        "from there; what you type next continues the text until the model ends it, or /clear begins a new "
        "one");
    if (!talk_.system().empty()) console_.note("the system prompt has no place in a text and is not used");
  }
  TextRequest request = options_.request;
  request.messages = first_messages(talk_.system(), "hello");
  for (const std::string& note : model_->without_effect(request)) console_.note("note: " + note);
  if (console_.is_interactive())
    console_.note("/help lists the commands, Ctrl-C stops an answer, Ctrl-D leaves");
}

bool Session::take(const terminal::Entry& entry) {
  if (entry.kind == terminal::EntryKind::end) return false;
  interrupt_->clear();
  if (entry.kind == terminal::EntryKind::interrupted) {
    if (!console_.is_interactive()) exit_code_ = interrupted_code;
    if (entry.text.empty() && console_.is_interactive())
      console_.note("to leave, type /exit or press Ctrl-D");
    return console_.is_interactive();
  }
  if (is_blank(entry.text)) return true;
  try {
    if (is_command(entry.text)) return obey(parse_command(entry.text));
    ask(terminal::without_quotes(entry.text));
  } catch (const Error& error) {
    // A turn that failed is over, the conversation is not; a broken device ends both.
    if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::internal) throw;
    console_.say(describe(error));
    if (!console_.is_interactive() && exit_code_ == 0) exit_code_ = exit_code(error.kind());
  }
  if (interrupt_->received() == 0 || console_.is_interactive()) return true;
  exit_code_ = interrupted_code;
  return false;
}

bool Session::obey(const SlashCommand& command) {
  switch (command.action) {
    case Action::leave: return false;
    case Action::help: help(); break;
    case Action::clear:
      talk_.clear();
      console_.note("a new conversation");
      break;
    case Action::system: set_system(command.arguments); break;
    case Action::set: set(command.arguments); break;
    case Action::show: show(); break;
    case Action::load: load_other(command.arguments); break;
    case Action::save: save(command.arguments); break;
    case Action::open: open(command.arguments); break;
    case Action::regenerate: regenerate(); break;
    case Action::undo: undo(); break;
    case Action::stats: stats(); break;
    case Action::unknown:
      console_.say(fmt::format(
          "{} is not a command; /help lists them, and a space before the slash makes it a message\n",
          command.name));
      break;
  }
  return true;
}

void Session::ask(const std::string& question) {
  TextRequest request = options_.request;
  talk_.ask(question);
  try {
    if (completes()) {
      request.prompt = talk_.text();
    } else {
      request.messages = talk_.messages();
    }
    answer(request);
  } catch (const Error&) {
    talk_.undo();  // as if it had not been asked
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
  const Answer answer = write_answer(*model_, std::move(prepared), *interrupt_, [&](const ReplyPart& part) {
    is_read_ = is_read_ && console_.write(view.show(part));
    return is_read_;
  });
  is_read_ = is_read_ && console_.write(view.finish());
  for (const std::string& warning : answer.warnings) console_.note("note: " + warning);
  talk_.answer({.question = {},
                .answer = answer.text,
                .reasoning = answer.reasoning,
                .tool_calls = answer.tool_calls,
                .finish_reason = answer.finish_reason});
  tally_.add(answer);
  for (const Sampled& sampled : answer.tokens) sequence.push_back(sampled.token);
  sequence_ = std::move(sequence);
  if (options_.shows_stats && is_read_) console_.note(answer_line(answer));
}

}  // namespace inferno::play
