// `inferno download`: a model from the hub, verified, into the shared cache or a folder.
#include <fmt/format.h>
#include <unistd.h>

#include <memory>

#include "base/error.h"
#include "cli/commands/shared/command_line.h"
#include "cli/download/run.h"
#include "cli/environment.h"
#include "cli/terminal/streams.h"
#include "hub/names/model_name.h"
#include "hub/settings.h"

namespace inferno::command {
namespace {

struct DownloadOptions {
  std::string model, revision, local_dir;
  std::vector<std::string> include, exclude;
  int jobs = 8;
  bool dry_run = false, yes = false;
};

void run(const DownloadOptions& options) {
  terminal::ignore_closed_pipes();
  const hub::HubSettings settings = hub_settings(Environment::of_process());
  hub::ModelName name = hub::parse_hub_name(options.model, settings.endpoint);
  if (!options.revision.empty()) {
    if (!name.revision.empty() && name.revision != options.revision) {
      fail(ErrorKind::invalid_request,
           fmt::format("{} and --revision {}: two different revisions", options.model, options.revision));
    }
    name.revision = options.revision;
  }
  const std::filesystem::path folder = download_model(settings, name,
                                                      {.include = options.include,
                                                       .exclude = options.exclude,
                                                       .local_dir = options.local_dir,
                                                       .jobs = options.jobs,
                                                       .is_dry_run = options.dry_run,
                                                       .asks = !options.yes});
  // A closed pipe does not make the download a failure.
  if (!options.dry_run) terminal::write_out(STDOUT_FILENO, folder.string() + "\n");
}

}  // namespace

void download(CommandLine app) {
  const Command command = app.command("download", "Download a model from the hub, verified and resumable");
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
  command.flag("-y,--yes", options->yes, "do not ask for confirmation");
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
