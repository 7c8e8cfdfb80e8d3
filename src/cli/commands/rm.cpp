// `inferno rm`: removes a model from the hub cache, except for files that other models use.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/commands/shared/command_line.h"
#include "cli/environment.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"
#include "hub/cache/removal.h"

namespace inferno::command {
namespace {

struct RmOptions {
  std::string model;
  bool yes = false;
};

void run(const RmOptions& options) {
  const Catalogue catalogue(catalogue_settings(Environment::of_process()));
  const CachedMatch match = catalogue.cached(catalogue.look_up(options.model));
  const hub::RemovalPlan plan = hub::plan_removal(match.repository, match.wanted);
  std::string what = fmt::format("{}", fmt::join(plan.models, ", "));
  if (plan.kept_bytes > 0)
    what += fmt::format(" ({} shared with other models are kept)", human_size(plan.kept_bytes));
  if (!options.yes) {
    const auto answer = ask_yes(fmt::format("remove {}, freeing {}?", what, human_size(plan.bytes)));
    if (!answer) {
      fail(ErrorKind::invalid_request,
           fmt::format("removing {} would free {}: not confirmed", what, human_size(plan.bytes)),
           {.why = "standard input is not a terminal",
            .next = fmt::format("inferno rm {} --yes", options.model)});
    }
    if (!*answer) {
      fmt::print(stderr, "nothing was removed\n");
      throw Exit{1};
    }
  }
  hub::carry_out(plan);
  fmt::print("removed {}, freed {}\n", printable(what), human_size(plan.bytes));
}

}  // namespace

void rm(CommandLine app) {
  const Command command = app.command("rm", "Remove a model from the hub cache");
  const auto options = std::make_shared<RmOptions>();
  command
      .option("MODEL", options->model,
              "org/name for the whole model, org/name@REVISION for one snapshot, org/name:QUANT for one "
              "GGUF model")
      .required();
  command.flag("-y,--yes", options->yes, "do not ask for confirmation");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
