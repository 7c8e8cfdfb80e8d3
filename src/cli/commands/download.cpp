// `inferno download`: a model from the hub, verified, into the shared cache or a folder.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/commands/shared/command_line.h"
#include "cli/download/run.h"
#include "cli/environment.h"
#include "cli/terminal/screen.h"
#include "cli/terminal/streams.h"
#include "hub/names/aliases.h"
#include "hub/names/model_name.h"
#include "hub/settings.h"
#include "model/load.h"
#include "model/tensor_plan.h"
#include "service/loading/model_files.h"

namespace inferno::command {
namespace {

struct DownloadOptions {
  std::string model, revision, local_dir;
  std::vector<std::string> include, exclude;
  int jobs = 8;
  bool dry_run = false, yes = false, any_family = false;
};

// Whether the model can be loaded: all of its files are here, and its family is supported.
bool runs(const Environment& environment, const std::string& name) {
  try {
    const ResolvedModel model = Catalogue(catalogue_settings(environment)).resolve(name);
    const ModelFiles files(folder_of_weights(model.path));
    const auto checkpoint = files.checkpoint();
    if (checkpoint->container() == Container::safetensors && !files.has_tokenizer_json()) return false;
    const ModelDescription plan = describe_model(*checkpoint);
    return plan_tensors(plan.spec, *plan.architecture, *checkpoint).problems.empty();
  } catch (const Error&) {
    return false;
  }
}

void run(const DownloadOptions& options) {
  terminal::ignore_closed_pipes();
  const Environment environment = Environment::of_process();
  hub::ModelName name = Catalogue(catalogue_settings(environment)).to_download(options.model);
  if (hub::find_alias(options.model) != nullptr) say(fmt::format("{} is {}\n", options.model, name.text()));
  if (!options.revision.empty()) {
    if (!name.revision.empty() && name.revision != options.revision) {
      fail(ErrorKind::invalid_request,
           fmt::format("{} and --revision {}: two different revisions", options.model, options.revision));
    }
    name.revision = options.revision;
  }
  const std::filesystem::path folder = download_model(environment, name,
                                                      {.include = options.include,
                                                       .exclude = options.exclude,
                                                       .local_dir = options.local_dir,
                                                       .jobs = options.jobs,
                                                       .is_dry_run = options.dry_run,
                                                       .any_family = options.any_family,
                                                       .asks = !options.yes});
  // A closed pipe does not make the download a failure.
  if (options.dry_run) return;
  terminal::write_out(STDOUT_FILENO, folder.string() + "\n");
  const std::string model = options.local_dir.empty() ? name.text() : folder.string();
  if (terminal::is_terminal(STDERR_FILENO) && runs(environment, model))
    say(fmt::format("now: inferno play {}\n", printable(shell_word(model))));
}

}  // namespace

void download(CommandLine app) {
  const Command command =
      app.command("download", "Download a model from the hub, verified and resumable", {"pull"});
  const auto options = std::make_shared<DownloadOptions>();
  command.option("MODEL", options->model, "org/name, org/name@REVISION, org/name:QUANT or a URL on the hub")
      .required();
  command.option("--include", options->include, "only files that match this pattern; may be repeated")
      .single_value();
  command.option("--exclude", options->exclude, "skip files that match this pattern; may be repeated")
      .single_value();
  command.option("--revision", options->revision, "branch, tag or commit; main if not given");
  command.option("--local-dir", options->local_dir,
                 "download plain files into this folder instead of the shared cache");
  command.option("-j,--jobs", options->jobs, "concurrent connections").range(1, 64).shows_default();
  command.flag("--dry-run", options->dry_run, "only print what would be fetched");
  command.flag("--any-family", options->any_family, "also a model of a family that Inferno does not support");
  command.flag("-y,--yes", options->yes, "do not ask for confirmation");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
