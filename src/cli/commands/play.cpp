// `inferno play`: a conversation in the terminal.
#include "cli/play/session.h"

#include "cli/command.h"
#include "cli/model_offer.h"
#include "cli/model_resolution.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"

namespace inferno::command {
namespace {

void run(play::PlayOptions options) {
  terminal::ignore_closed_pipes();
  const Environment environment = Environment::of_process();
  options.model = known_name(options.model, environment);
  offer_download(options.model, options.yes, environment);
  play::Console console(environment);
  play::Session session(std::move(options), console, models_here(environment));
  if (const int code = session.run()) throw Exit{code};
}

}  // namespace

void play(CLI::App& app) {
  CLI::App* command = app.add_subcommand("play", "Talk with a model in the terminal");
  const auto options = std::make_shared<play::PlayOptions>();
  command->add_option("MODEL,-m,--model", options->model, std::string(model_help));
  command->add_flag("-y,--yes", options->yes, "download a model that is not here without asking");
  command->add_option("--system", options->system, "the system prompt");
  command->add_option("--reasoning-effort", options->request.reasoning_effort, "low, medium or high")
      ->check(effort_problem);
  add_switch(*command, "--think,!--no-think", options->request.think, "reason before answering, or not");
  add_switch(*command, "--show-reasoning,!--hide-reasoning", options->shows_reasoning,
             "show what the model thinks; the default on a terminal");
  command->add_flag("!--no-stats", options->shows_stats, "no line of figures after each answer");
  add_sampling_options(*command, options->request.settings);
  add_text_model_options(*command, options->text_model);
  command->callback([options] { run(*options); });
}

}  // namespace inferno::command
