// `inferno play`: a conversation in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"
#include "base/utf8.h"
#include "catalogue/builtin_model.h"
#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/commands/shared/generating.h"
#include "cli/download/offer.h"
#include "cli/environment.h"
#include "cli/play/session.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"

namespace inferno::command {
namespace {

struct Options {
  std::string model, prompt;
  bool has_prompt = false;
  bool yes = false;  // download a model without asking
  play::PlayOptions play;
};

// What `ollama run MODEL "question"` does.
void answer_once(Options& options) {
  if (options.play.request.settings.logprobs) play::refuse_logprobs();
  if (options.prompt.empty()) {
    fail(ErrorKind::invalid_request, "the prompt is empty",
         {.why = {}, .next = "give a prompt of at least one character, or none for a conversation"});
  }
  GenerateOptions once;
  once.model = options.model;
  once.argument = options.prompt;
  once.has_argument = true;
  once.system = options.play.system;
  once.yes = options.yes;
  once.mentions_raw = false;  // not an option of play
  once.request = options.play.request;
  once.load = options.play.load;
  generate_answers(once);
}

// Whether it is a short text with blanks and no path: a question where the model belongs.
bool looks_like_question(const std::string& model) {
  constexpr std::size_t max_bytes = 100;
  return model.find(' ') != std::string::npos && !model.ends_with(".gguf") && model.size() <= max_bytes &&
         utf8::is_valid(model) &&
         std::ranges::none_of(model, [](unsigned char c) { return c == '/' || c < 0x20 || c == 0x7F; });
}

ResolvedModel find_model(Catalogue& catalogue, const Options& options, const Environment& environment) try {
  return resolve_or_download(catalogue, options.model, options.yes, environment);
} catch (const Error& error) {
  if (!looks_like_question(options.model)) throw;
  fail(error.kind(), error.what(),
       {.why = error.advice().why,
        .next = fmt::format("inferno play {} {}", builtin_name, shell_quoted(options.model))});
}

void run(Options& options) {
  terminal::ignore_closed_pipes();
  if (options.has_prompt) return answer_once(options);
  const Environment environment = Environment::of_process();
  Catalogue catalogue(catalogue_settings(environment));
  std::optional<ResolvedModel> model;
  if (!options.model.empty()) model = find_model(catalogue, options, environment);
  options.play.load.shows_meter = environment.allows_redrawing(terminal::is_terminal(STDERR_FILENO));
  play::Console console(environment);
  play::Session session(std::move(options.play), console, catalogue, std::move(model));
  if (const int code = session.run()) throw Exit{code};
}

// They have no effect on a single answer: given with a PROMPT they are refused, and defaults of the
// configuration are left out.
void add_conversation_options(Command command, play::PlayOptions& options, Option prompt) {
  command
      .flag("--show-reasoning,!--hide-reasoning", options.shows_reasoning,
            "show the model's reasoning; the default on a terminal")
      .excludes(prompt);
  command
      .flag("--plain", options.is_plain,
            "show answers as the model wrote them, without colours, tables and word wrap")
      .excludes(prompt);
  command.flag("!--no-stats", options.shows_stats, "don't print statistics after each answer")
      .excludes(prompt);
  command
      .flag("--continue", options.continues,
            "go on with the last conversation, with its model unless MODEL is given")
      .excludes(prompt);
  command
      .choice<play::OnFull>("--on-full", options.on_full,
                            {{"drop", play::OnFull::drop}, {"stop", play::OnFull::stop}},
                            "when the context is full: drop the oldest messages (the default), or stop")
      .excludes(prompt);
}

}  // namespace

void play(CommandLine app) {
  const Command command = app.command("play", "Talk with a model in the terminal", {"run", "chat"});
  const auto options = std::make_shared<Options>();
  TextRequest& request = options->play.request;
  command.option("MODEL,-m,--model", options->model, std::string(model_help));
  const Option prompt =
      command.option("PROMPT", options->prompt, "answer this message instead, and exit; - for stdin");
  command.flag("-y,--yes", options->yes, "download a missing model without asking");
  command.option("--system", options->play.system, "the system prompt");
  command.option("--reasoning-effort", request.reasoning_effort, "low, medium or high").check(effort_problem);
  command.flag("--think,!--no-think", request.think, "reason before answering, or not");
  add_conversation_options(command, options->play, prompt);
  add_sampling_options(command, request.settings);
  add_load_options(command, options->play.load);
  command.after_parsing([options, prompt] { options->has_prompt = prompt.was_given(); });
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
