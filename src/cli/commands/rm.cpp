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
  std::vector<std::string> models;
  bool yes = false;
};

void remove(const Catalogue& catalogue, const std::string& model, bool yes) {
  const CachedMatch match = catalogue.cached(model);
  const hub::RemovalPlan plan = hub::plan_removal(match.repository, match.wanted);
  std::string what = fmt::format("{}", fmt::join(plan.models, ", "));
  if (plan.kept_bytes > 0)
    what += fmt::format(" ({} shared with other models are kept)", human_size(plan.kept_bytes));
  if (!yes) {
    const auto answer = ask_yes(fmt::format("remove {}, freeing {}?", what, human_size(plan.bytes)));
    if (!answer) {
      fail(ErrorKind::invalid_request, "not removed: confirmation needed and stdin is not a terminal",
           {.why = fmt::format("removing {} would free {}", what, human_size(plan.bytes)),
            .next = fmt::format("inferno rm {} --yes", model)});
    }
    if (!*answer) {
      say("not removed\n");
      throw Exit{1};
    }
  }
  hub::carry_out(plan);
  fmt::print("removed {}, freed {}\n", printable(what), human_size(plan.bytes));
}

void run(const RmOptions& options) {
  Catalogue catalogue(catalogue_settings(Environment::of_process()));
  // A mistake in one name is found before anything is removed.
  for (const std::string& model : options.models) catalogue.cached(model);
  for (const std::string& model : options.models) {
    remove(catalogue, model, options.yes);
    catalogue.refresh();
  }
}

}  // namespace

void rm(CommandLine app) {
  const Command command = app.command("rm", "Remove models from the hub cache");
  const auto options = std::make_shared<RmOptions>();
  command
      .option("MODEL", options->models,
              "org/name for the whole model, org/name@REVISION for one snapshot, org/name:QUANT for one "
              "GGUF model")
      .required();
  command.flag("-y,--yes", options->yes, "do not ask for confirmation");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
