// `inferno play`: a conversation in the terminal.
#include <unistd.h>

#include "cli/commands/shared/arguments.h"
#include "cli/commands/shared/command_line.h"
#include "cli/download/offer.h"
#include "cli/environment.h"
#include "cli/play/session.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"

namespace inferno::command {
namespace {

struct Options {
  std::string model;
  bool yes = false;  // download a model without asking
  play::PlayOptions play;
};

void run(Options& options) {
  terminal::ignore_closed_pipes();
  const Environment environment = Environment::of_process();
  Catalogue catalogue(catalogue_settings(environment));
  std::optional<ResolvedModel> model;
  if (!options.model.empty()) {
    model = resolve_or_download(catalogue, options.model, options.yes, hub_settings(environment));
  }
  options.play.load.shows_meter = environment.allows_redrawing(terminal::is_terminal(STDERR_FILENO));
  play::Console console(environment);
  play::Session session(std::move(options.play), console, catalogue, std::move(model));
  if (const int code = session.run()) throw Exit{code};
}

}  // namespace

void play(CommandLine app) {
  const Command command = app.command("play", "Talk with a model in the terminal");
  const auto options = std::make_shared<Options>();
  TextRequest& request = options->play.request;
  command.option("MODEL,-m,--model", options->model, std::string(model_help));
  command.flag("-y,--yes", options->yes, "download a missing model without asking");
  command.option("--system", options->play.system, "the system prompt");
  command.option("--reasoning-effort", request.reasoning_effort, "low, medium or high").check(effort_problem);
  command.flag("--think,!--no-think", request.think, "reason before answering, or not");
  command.flag("--show-reasoning,!--hide-reasoning", options->play.shows_reasoning,
               "show the model's reasoning; the default on a terminal");
  command.flag("!--no-stats", options->play.shows_stats, "no line of statistics after each answer");
  add_sampling_options(command, request.settings);
  add_load_options(command, options->play.load);
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
