#include "cli/download/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/sizes.h"
#include "base/utf8.h"
#include "cli/download/display.h"
#include "cli/download/family.h"
#include "cli/download/fit.h"
#include "cli/download/interruptible.h"
#include "cli/download/measured_rate.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"
#include "hub/download/model_download.h"
#include "hub/files.h"
#include "hub/names/gguf_file_name.h"
#include "model/architecture.h"

namespace inferno {
namespace {

constexpr std::size_t max_skipped_named = 3;

bool was_stopped() {
  return SignalWatcher::received() != 0;
}

// "skipping 4 files, 27.5 GB: a copy of the weights for other tools (original/a, original/b, ...)"
void say_skipped(const hub::FileSelection& selection) {
  std::map<std::string, std::vector<const hub::HubFile*>> by_reason;
  for (const hub::SkippedFile& skipped : selection.skipped)
    by_reason[skipped.reason].push_back(&skipped.file);
  for (const auto& [reason, files] : by_reason) {
    std::uint64_t bytes = 0;
    std::string names;
    for (std::size_t at = 0; at < files.size(); ++at) {
      bytes += files[at]->size;
      if (at < max_skipped_named) names += (at > 0 ? ", " : "") + files[at]->path;
      if (at == max_skipped_named) names += ", ...";
    }
    say(fmt::format("skipping {}, {}: {} ({})\n", counted(files.size(), "file"), human_size(bytes),
                    printable(reason), printable(names)));
  }
}

void say_plan(const hub::ModelDownload& download) {
  const hub::ModelPlan& plan = download.plan();
  const hub::DownloadProgress progress = download.progress();
  say(fmt::format("{} @ {} ({})  {}, {}", printable(plan.name.id()), printable(plan.name.revision_or_main()),
                  plan.info.commit.substr(0, 8), counted(plan.selection.taken.size(), "file"),
                  human_size(plan.selection.bytes())));
  const std::uint64_t here = progress.have + progress.resumable;
  if (here > 0) say(fmt::format(", {} already downloaded", human_size(here)));
  say("\n");
  say_skipped(plan.selection);
}

void list_files(const hub::FileSelection& selection) {
  for (const hub::HubFile& file : selection.taken) {
    fmt::print("{:>10}  {}\n", human_size(file.size), printable(file.path));
  }
}

std::uint64_t missing_bytes(const hub::DownloadProgress& progress) {
  return progress.size - progress.have - progress.resumable;
}

// Asks only if the download would use more than half of the free space. Without a terminal the answer is yes.
bool is_confirmed(const hub::ModelDownload& download) {
  const std::uint64_t missing = missing_bytes(download.progress());
  const std::uint64_t free = hub::free_space(download.folder());
  if (missing < free / 2) return true;
  const std::string question = fmt::format("this download needs {} of {} free disk space, continue?",
                                           human_size(missing), human_size(free));
  return ask_yes(question).value_or(true);
}

// Gigabytes that cannot be used here are downloaded only if the user says so.
void check_family(const std::optional<Family>& family, const std::string& name,
                  const DownloadChoice& choice) {
  if (!family || family->is_supported() || choice.any_family) return;
  const std::string question =
      fmt::format("{} is a model of the family {}, which Inferno cannot run. Download it anyway?", name,
                  quote(family->type));
  if (choice.asks && ask_yes(question).value_or(false)) return;
  try {
    refuse_architecture(name, family->type, family->container);
  } catch (const Error& error) {
    fail(error.kind(), error.what(),
         {.why = error.advice().why,
          .next = "inferno search --fits NAME lists models that run here; --any-family downloads it for "
                  "another program"});
  }
}

// What the user should know about memory before gigabytes are downloaded.
std::string shortage_of(const hub::ModelPlan& plan, const std::optional<Family>& family) {
  if (!family || !family->is_supported()) return "";  // whose weights are not looked for, or do not matter
  ListedModel model = {.config = family->config};
  for (const hub::HubFile& file : plan.selection.taken) {
    if (hub::is_gguf(file.path) || file.path.ends_with(".safetensors")) model.weight_bytes += file.size;
  }
  return memory_shortage(model);
}

void say_stopped(const hub::DownloadProgress& progress) {
  const double share =
      progress.size == 0 ? 0 : static_cast<double>(progress.have) / static_cast<double>(progress.size);
  say(fmt::format("stopped at {:.0f} %; run the same command to resume\n", 100 * share));
}

void say_done(const hub::DownloadProgress& before, const hub::DownloadProgress& after, double seconds) {
  if (before.have == before.size) {
    say(fmt::format("already complete: {}\n", counted(after.files.size(), "file")));
    return;
  }
  say(fmt::format(
      "verified {}; downloaded {} in {} ({}/s)\n", counted(after.files.size(), "file"),
      human_size(after.fetched), short_duration(seconds),
      human_size(static_cast<std::uint64_t>(static_cast<double>(after.fetched) / std::max(seconds, 1e-3)))));
}

}  // namespace

std::filesystem::path download_model(const Environment& environment, const hub::ModelName& name,
                                     const DownloadChoice& choice) {
  const hub::HubSettings settings = hub_settings(environment);
  hub::require_online(settings, name.text() + ": a download");
  const SignalWatcher watcher(stop_signals);
  const auto client = std::make_unique<hub::HubClient>(settings, was_stopped);
  std::unique_ptr<hub::ModelDownload> download;
  std::optional<Family> family;
  const auto prepare = [&] {
    const hub::SelectionRules rules = {.model = name.id(),
                                       .quant = name.quant,
                                       .path = name.path,
                                       .include = choice.include,
                                       .exclude = choice.exclude};
    hub::ModelPlan plan = hub::plan_model(*client, name, rules);
    download = std::make_unique<hub::ModelDownload>(
        *client, std::move(plan), hub::ModelPlace{.local_folder = choice.local_dir, .jobs = choice.jobs},
        was_stopped);
    const hub::DownloadProgress progress = download->progress();
    if (progress.have < progress.size) family = family_on_hub(*client, download->plan());
  };
  WaitNotice waits;
  run_interruptibly(
      prepare, [&] { waits.show(client->gate()->pause()); },
      [] { say("stopped before the download began\n"); });
  say_plan(*download);
  const std::string shortage = choice.warns_of_memory ? shortage_of(download->plan(), family) : "";
  if (!shortage.empty() && !choice.is_wanted) say(fmt::format("note: {}\n", shortage));
  if (choice.is_dry_run) {
    list_files(download->plan().selection);
    return download->folder();
  }
  check_family(family, name.text(), choice);
  download->require_space();
  if (choice.is_wanted && !choice.is_wanted(missing_bytes(download->progress()), shortage))
    throw Exit{not_downloaded_code};
  if (choice.asks && !is_confirmed(*download)) throw Exit{0};

  const hub::DownloadProgress before = download->progress();
  const auto begin = std::chrono::steady_clock::now();
  DownloadDisplay display(environment, settings.shows_progress && before.have < before.size);
  const auto stopped = [&] {
    display.clear();
    say_stopped(download->progress());
  };
  try {
    run_interruptibly([&] { download->run(); },
                      [&] { display.show(download->progress(), client->gate()->pause()); }, stopped);
  } catch (const Error&) {
    display.clear();
    throw;
  }
  display.clear();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const hub::DownloadProgress after = download->progress();
  say_done(before, after, seconds);
  keep_download_rate(environment, after.fetched, seconds);
  return download->folder();
}

}  // namespace inferno
