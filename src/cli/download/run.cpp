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
#include "cli/download/interruptible.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"
#include "hub/download/model_download.h"
#include "hub/files.h"

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
  if (progress.have > 0) say(fmt::format(", {} already downloaded", human_size(progress.have)));
  say("\n");
  say_skipped(plan.selection);
}

void list_files(const hub::FileSelection& selection) {
  for (const hub::HubFile& file : selection.taken) {
    fmt::print("{:>10}  {}\n", human_size(file.size), printable(file.path));
  }
}

// Asks only if the download would use more than half of the free space. Without a terminal the answer is yes.
bool is_confirmed(const hub::ModelDownload& download) {
  const hub::DownloadProgress progress = download.progress();
  const std::uint64_t missing = progress.size - progress.have;
  const std::uint64_t free = hub::free_space(download.folder());
  if (missing < free / 2) return true;
  const std::string question = fmt::format("this download needs {} of {} free disk space, continue?",
                                           human_size(missing), human_size(free));
  return ask_yes(question).value_or(true);
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

std::filesystem::path download_model(const hub::HubSettings& settings, const hub::ModelName& name,
                                     const DownloadChoice& choice) {
  hub::require_online(settings, fmt::format("{}: cannot download", name.text()));
  const SignalWatcher watcher(stop_signals);
  const auto client = std::make_unique<hub::HubClient>(settings, was_stopped);
  std::unique_ptr<hub::ModelDownload> download;
  const auto prepare = [&] {
    const hub::SelectionRules rules = {
        .quant = name.quant, .path = name.path, .include = choice.include, .exclude = choice.exclude};
    hub::ModelPlan plan = hub::plan_model(*client, name, rules);
    download = std::make_unique<hub::ModelDownload>(
        *client, std::move(plan), hub::ModelPlace{.local_folder = choice.local_dir, .jobs = choice.jobs},
        was_stopped);
  };
  run_interruptibly(prepare, [] {}, [] { say("stopped before the download began\n"); });
  say_plan(*download);
  if (choice.is_dry_run) {
    list_files(download->plan().selection);
    return download->folder();
  }
  download->require_space();
  if (choice.asks && !is_confirmed(*download)) throw Exit{0};

  const hub::DownloadProgress before = download->progress();
  const auto begin = std::chrono::steady_clock::now();
  DownloadDisplay display(
      DownloadDisplay::kind_for_stderr(settings.shows_progress && before.have < before.size));
  const auto stopped = [&] {
    display.clear();
    say_stopped(download->progress());
  };
  try {
    run_interruptibly([&] { download->run(); }, [&] { display.show(download->progress()); }, stopped);
  } catch (const Error&) {
    display.clear();
    throw;
  }
  display.clear();
  say_done(before, download->progress(),
           std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  return download->folder();
}

}  // namespace inferno
