#include "cli/play/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "catalogue/builtin_model.h"
#include "cli/play/answer_view.h"
#include "cli/play/attachments.h"
#include "cli/play/entry_completion.h"
#include "cli/play/model_menu.h"
#include "cli/terminal/input/line_editor.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/screen.h"
#include "engine/request.h"
#include "service/answer.h"
#include "service/kept_tokens.h"

namespace inferno::play {
namespace {

[[noreturn]] void refuse_full(const PromptTooLong& error) {
  fail(ErrorKind::invalid_request,
       fmt::format("the context is full: the conversation has {} tokens, the context {}",
                   grouped(error.prompt_tokens()), grouped(static_cast<std::uint64_t>(error.context()))),
       {.why = {},
        .next = "/clear starts over, /undo removes the last exchange, --on-full drop drops the oldest"});
}

}  // namespace

void refuse_logprobs() {
  fail(ErrorKind::invalid_request, "logprobs: not available in play",
       {.why = {}, .next = "inferno generate --json --logprobs N"});
}

Session::Session(PlayOptions options, Console& console, const Catalogue& catalogue,
                 std::optional<ResolvedModel> model)
    : options_(std::move(options)),
      console_(console),
      catalogue_(catalogue),
      chosen_(std::move(model)),
      kept_(console.conversations_folder(),
            console.is_interactive() ? Conversations::New::kept : Conversations::New::not_kept) {
  transcript_.set_system(options_.system);
  if (options_.request.settings.logprobs) refuse_logprobs();
}

int Session::run() {
  if (!choose()) return exit_code_;
  load(*chosen_);
  greet();
  if (options_.continues) open_kept(1);
  while (has_reader_) {
    if (!handle(console_.read({.prompts = console_.prompts(),
                               .is_remembered = true,
                               .was_interrupted = [this] { return interrupt_->received() != 0; },
                               .completer = [this](std::string_view text) { return completed(text); }})))
      break;
  }
  return exit_code_;
}

bool Session::choose_last() {
  const auto last = kept_.newest(1);
  if (last.empty() || last.front().model.empty()) return false;
  try {
    chosen_ = catalogue_.resolve(last.front().model);
    return true;
  } catch (const Error& error) {
    console_.note(fmt::format("the last conversation was with {}, which cannot be used: {}",
                              last.front().model, error.what()));
    return false;
  }
}

bool Session::choose() {
  if (chosen_) return true;
  if (options_.continues && choose_last()) return true;
  std::vector<FoundModel> complete;
  if (console_.is_interactive()) complete = complete_models(catalogue_.inventory());
  if (complete.size() < 2) {
    chosen_ = catalogue_.builtin();
    return true;
  }
  console_.say("models on this machine:\n" + model_menu(complete));
  std::vector<std::string> names;
  for (const FoundModel& model : complete) names.push_back(model.name);
  // Enter alone takes the model of the last conversation, if it is still here.
  const auto last = kept_.newest(1);
  const auto used = last.empty() ? names.end() : std::ranges::find(names, last.front().model);
  const std::size_t usual = used == names.end() ? 0 : static_cast<std::size_t>(used - names.begin());
  while (true) {
    terminal::Prompts prompts = console_.prompts();
    prompts.first = fmt::format("number or name [{}]: ", usual + 1);
    const terminal::Entry entry =
        console_.read({.prompts = prompts, .is_remembered = false, .completer = [&](std::string_view typed) {
                         return complete_word(typed, names);
                       }});
    if (entry.kind == terminal::EntryKind::interrupted) exit_code_ = interrupted_code;
    if (entry.kind != terminal::EntryKind::text) return false;
    const bool is_usual = trimmed(entry.text).empty();
    if (const FoundModel* model = is_usual ? &complete[usual] : choose_from_menu(entry.text, complete)) {
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
  kept_.begin();
  sequence_.clear();
  is_in_sequence_ = false;
}

void Session::greet() const {
  console_.note(
      fmt::format("{} ({}), context of {} tokens, loaded in {:.1f} s", model_->name(), model_->architecture(),
                  grouped(static_cast<std::uint64_t>(model_->engine().context())), model_->load_seconds()));
  if (chosen_->name == builtin_name)
    console_.note("a toy for trying the program, often wrong; inferno doctor names models that fit");
  if (completes_text()) {
    console_.note("base model without a chat template: it continues your text. /clear starts over.");
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
  if (trimmed(entry.text).empty()) return true;
  try {
    if (is_command(entry.text)) return run_command(parse_command(entry.text));
    send(terminal::without_quotes(entry.text));
  } catch (const Error& error) {
    // A failed turn does not end the conversation; a broken device does.
    if (error.kind() == ErrorKind::device || error.kind() == ErrorKind::internal) throw;
    const Detail detail = options_.load.verbose ? Detail::full : Detail::brief;
    console_.say(
        describe(error, detail,
                 console_.is_interactive() ? console_.columns() : terminal::line_columns(STDERR_FILENO)));
    if (!console_.is_interactive() && exit_code_ == 0) exit_code_ = exit_code(error.kind());
  }
  if (interrupt_->received() == 0 || console_.is_interactive()) return true;
  exit_code_ = interrupted_code;
  return false;
}

void Session::send(const std::string& message) {
  // A pipe delivers texts, not messages with names of files.
  if (!console_.is_interactive()) return ask(message);
  const Attached attached =
      attach_files(message, [this](const std::string& typed) { return console_.path(typed); });
  for (const AttachedFile& file : attached.files) {
    console_.note(fmt::format("attached {}: {}, {}", file.name, counted(file.lines, "line"),
                              counted(file.bytes, "byte")));
  }
  ask(attached.message);
}

void Session::ask(const std::string& question) {
  transcript_.ask(question);
  try {
    answer();
  } catch (const Error&) {
    transcript_.undo();  // the failed question is not part of the conversation
    throw;
  }
}

TextRequest Session::conversation() const {
  TextRequest request = options_.request;
  if (completes_text()) {
    request.prompt = transcript_.text();
  } else {
    request.messages = transcript_.messages();
  }
  return request;
}

PreparedRequest Session::prepare_to_fit() {
  const auto limit = static_cast<std::size_t>(model_->engine().context());
  // An answer needs room too: what the user set, or an eighth of the context.
  const int wanted = options_.request.settings.max_tokens.value_or(-1);
  const std::size_t room = std::min(wanted > 0 ? static_cast<std::size_t>(wanted) : limit, limit / 8);
  const std::size_t before = transcript_.dropped();
  std::size_t goal = limit - room;  // tokens of the prompt
  while (true) {
    const bool is_alone = transcript_.dropped() + 1 == transcript_.turns().size();
    try {
      PreparedRequest request = model_->prepare(conversation());
      const bool is_tight = request.generation.prompt.size() > goal;
      if (is_alone || !is_tight || options_.on_full == OnFull::stop) {
        const std::size_t dropped = transcript_.dropped() - before;
        if (dropped > 0)
          console_.note(fmt::format("context full: dropped the oldest {}; /clear starts over",
                                    counted(dropped, "exchange")));
        return request;
      }
    } catch (const PromptTooLong& error) {
      if (is_alone) throw;
      if (options_.on_full == OnFull::stop) refuse_full(error);
    }
    transcript_.drop_oldest();
    // What follows the dropped messages is computed again, so enough of them go for several turns.
    goal = std::min(goal, limit * 3 / 4);
  }
}

ContextUse Session::context_use() const {
  return {.tokens = is_in_sequence_ ? sequence_.size() : count_tokens(),
          .limit = static_cast<std::size_t>(model_->engine().context())};
}

std::size_t Session::count_tokens() const {
  if (transcript_.turns().empty()) return 0;
  TextRequest request = conversation();
  const Tokenizer& tokenizer = model_->tokenizer();
  if (request.prompt) return tokenizer.add_special(tokenizer.encode(*request.prompt)).size();
  request.add_generation_prompt = false;
  return model_->render(request, std::numeric_limits<std::size_t>::max()).tokens.size();
}

void Session::warn_of_full_context() {
  const ContextUse use = context_use();
  if (warned_of_context_ || !use.is_nearly_full()) return;
  warned_of_context_ = true;
  console_.note(fmt::format(
      "the conversation takes {} tokens of the context; when it is full, {}", use.text(),
      options_.on_full == OnFull::drop ? "the oldest messages are dropped" : "/clear starts over"));
}

ViewOptions Session::view_options() const {
  const int columns = console_.columns();
  return {.is_terminal = console_.writes_to_terminal(),
          .is_rendered = !options_.is_plain && (columns > 0 || console_.has_colour()),
          .has_colour = !options_.is_plain && console_.has_colour(),
          .shows_reasoning = options_.shows_reasoning.value_or(console_.writes_to_terminal()),
          .columns = columns};
}

std::optional<terminal::Completion> Session::completed(std::string_view before_cursor) const {
  const CompletionSources sources = {
      .models =
          [this] {
            std::vector<std::string> names;
            for (const FoundModel& model : catalogue_.inventory().models) names.push_back(model.name);
            return names;
          },
      .settings = [] { return setting_names(); },
      .path_of = [this](const std::string& typed) { return console_.path(typed); }};
  return complete_entry(before_cursor, sources);
}

void Session::answer() {
  AnswerView view(view_options());
  PreparedRequest prepared = prepare_to_fit();
  prepared.generation.prompt = with_kept_tokens(model_->tokenizer(), prepared.generation.prompt, sequence_);
  std::vector<TokenId> sequence = prepared.generation.prompt;
  const auto interrupted = [this] { return interrupt_->received() != 0; };
  const Answer answer = write_answer(*model_, std::move(prepared), interrupted, [&](const ReplyPart& part) {
    view.resize(console_.columns());
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
  is_in_sequence_ = true;
  if (!kept_.keep(transcript_, model_->name()) && !warned_of_keeping_) {
    warned_of_keeping_ = true;
    console_.note("note: the conversation cannot be kept; /save FILE saves it");
  }
  if (!has_reader_) return;
  if (options_.shows_stats) console_.note(answer_line(answer, context_use()));
  warn_of_full_context();
}

}  // namespace inferno::play
