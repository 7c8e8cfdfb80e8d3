#include "hub/download/model_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "hub/download/model_placing.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

// The hub sends larger ones in pieces over a protocol of its own only.
constexpr std::uint64_t max_bytes_over_http = 50'000'000'000;

void require_servable(const HubFile& file, const HubSettings& settings) {
  if (file.size <= max_bytes_over_http || settings.endpoint_said_by != "default") return;
  fail(ErrorKind::unsupported,
       fmt::format("{}: a file of {:.1f} GB", file.path, static_cast<double>(file.size) / 1e9),
       {.why = "the hub serves files over 50 GB by its Xet protocol only, which Inferno does not speak",
        .next = "fetch it with Hugging Face's own tool (hf download): Inferno finds it in the same cache"});
}

// Listings of some mirrors do not say what a file hashes to; its headers do.
void complete(HubFile& file, HubClient& client, const ModelPlan& plan) {
  if (!file.etag().empty()) return;
  const RemoteFile told = client.head(plan.name.id(), plan.info.commit, file.path);
  if (told.etag.empty()) {
    fail(ErrorKind::network, fmt::format("{}: the hub does not say what it hashes to", file.path),
         {.why = "no file is taken that cannot be verified", .next = "use another hub: unset HF_ENDPOINT"});
  }
  (told.etag.size() == 64 ? file.sha256 : file.git_oid) = told.etag;
  if (told.size != 0) file.size = told.size;
}

}  // namespace

ModelPlan plan_model(HubClient& client, const ModelName& name, const SelectionRules& rules) {
  ModelPlan plan;
  plan.name = name;
  plan.info = client.info(name.id(), name.revision_or_main());
  plan.listing = client.tree(name.id(), plan.info.commit);
  plan.selection = select_files(plan.listing, rules);
  for (HubFile& file : plan.selection.taken) {
    complete(file, client, plan);
    require_servable(file, client.settings());
  }
  if (!plan.info.gated.empty()) client.check_access(name.id());
  return plan;
}

ModelDownload::ModelDownload(const HubClient& client, ModelPlan plan, const ModelPlace& place,
                             IsCancelled is_cancelled)
    : plan_(std::move(plan)) {
  placing_ = place.local_folder.empty() ? ModelPlacing::in_cache(client.settings(), plan_)
                                        : ModelPlacing::in_folder(place.local_folder, plan_);
  std::vector<DownloadItem> items;
  std::set<std::filesystem::path> destinations;
  for (const HubFile& file : plan_.selection.taken) {
    DownloadItem item = placing_->item(file);
    // Files of the same content are one blob with several links.
    if (destinations.insert(item.destination).second) items.push_back(std::move(item));
  }
  // Large ones first, so that the end is not one connection's work on the largest.
  std::ranges::stable_sort(
      items, [](const DownloadItem& a, const DownloadItem& b) { return a.file.size > b.file.size; });
  DownloadSource source = {.id = plan_.name.id(),
                           .commit = plan_.info.commit,
                           .on_absent = [this](const std::string& path) { placing_->note_absent(path); }};
  download_ = std::make_unique<Download>(client.settings(), std::move(source), std::move(items), place.jobs,
                                         client.gate(), std::move(is_cancelled));
}

ModelDownload::~ModelDownload() = default;

std::filesystem::path ModelDownload::folder() const {
  return placing_->folder();
}

void ModelDownload::require_space() const {
  download_->require_space();
}

void ModelDownload::run() {
  const DownloadProgress before = download_->progress();
  placing_->prepare(before.have == before.size);
  download_->run();
  placing_->finish();
}

DownloadProgress ModelDownload::progress() const {
  return download_->progress();
}

}  // namespace inferno::hub
