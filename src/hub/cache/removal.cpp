#include "hub/cache/removal.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <system_error>

#include "base/error.h"
#include "hub/files.h"
#include "hub/names/hub_file.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr int max_depth = 8;

std::uint64_t disk_bytes(const fs::path& file) {
  struct stat status = {};
  return ::lstat(file.c_str(), &status) == 0 && S_ISREG(status.st_mode)
             ? static_cast<std::uint64_t>(status.st_size)
             : 0;
}

// The blobs that the links of a snapshot point to, except for the links in `without`.
std::set<std::string> blobs_of(const fs::path& snapshot, const std::set<fs::path>& without) {
  std::set<std::string> blobs;
  for (const PresentFile& file : files_below(snapshot, max_depth)) {
    if (!file.etag.empty() && !without.contains(file.file)) blobs.insert(file.etag);
  }
  return blobs;
}

std::vector<fs::path> snapshots_in(const RepositoryLayout& layout) {
  std::vector<fs::path> snapshots;
  std::error_code problem;
  for (fs::directory_iterator at(layout.snapshots(), problem), end; !problem && at != end;
       at.increment(problem)) {
    snapshots.push_back(at->path());
  }
  return snapshots;
}

void add_blob(const RepositoryLayout& layout, const std::string& etag, RemovalPlan& plan) {
  std::error_code problem;
  for (fs::directory_iterator at(layout.blobs(), problem), end; !problem && at != end;
       at.increment(problem)) {
    const std::string name = at->path().filename().string();
    const bool is_part = name.starts_with(etag + ".") && name.ends_with(".incomplete");
    if (name != etag && !is_part) continue;
    plan.blobs.push_back(at->path());
    plan.bytes += disk_bytes(at->path());
    plan.locks.push_back(layout.lock(etag));
  }
}

// The blobs in `candidates` that no remaining link points to.
void add_unused_blobs(const RepositoryLayout& layout, const std::set<std::string>& candidates,
                      const std::set<fs::path>& removed, RemovalPlan& plan) {
  std::set<std::string> used;
  for (const fs::path& snapshot : snapshots_in(layout)) {
    if (!removed.contains(snapshot)) used.merge(blobs_of(snapshot, removed));
  }
  for (const std::string& etag : candidates) {
    if (used.contains(etag)) {
      plan.kept_bytes += disk_bytes(layout.blob(etag));
    } else {
      add_blob(layout, etag, plan);
    }
  }
}

void plan_repository(const CachedRepository& repository, RemovalPlan& plan) {
  const RepositoryLayout& layout = repository.layout;
  for (const CachedModel& model : repository.models) plan.models.push_back(model.name.text());
  if (plan.models.empty()) plan.models.push_back(repository.name.text());
  plan.entries = {layout.refs(), layout.snapshots(), layout.trees(), layout.folder() / ".no_exist"};
  plan.blobs = {layout.blobs()};
  plan.folders = {layout.folder()};
  plan.bytes = repository.bytes;
  for (const PresentFile& blob : files_below(layout.blobs(), 0)) {
    const std::string etag = blob.path.substr(0, blob.path.find('.'));
    if (is_etag(etag)) plan.locks.push_back(layout.lock(etag));
  }
}

void plan_snapshot(const CachedRepository& repository, const CachedModel& model, RemovalPlan& plan) {
  const RepositoryLayout& layout = repository.layout;
  const fs::path snapshot = layout.snapshots() / model.commit;
  for (const CachedModel& other : repository.models) {
    if (other.commit == model.commit) plan.models.push_back(other.name.text());
  }
  for (const std::string& revision : model.revisions) plan.entries.push_back(layout.ref(revision));
  std::set<std::string> candidates = blobs_of(snapshot, {});
  if (is_commit(model.commit)) {
    for (const HubFile& file : read_tree(layout.tree(model.commit)).value_or(std::vector<HubFile>{})) {
      candidates.insert(file.etag());
    }
    plan.entries.push_back(layout.tree(model.commit));
    plan.entries.push_back(layout.folder() / ".no_exist" / model.commit);
  }
  plan.entries.push_back(snapshot);
  for (const PresentFile& file : files_below(snapshot, max_depth)) plan.bytes += disk_bytes(file.file);
  add_unused_blobs(layout, candidates, {snapshot}, plan);
}

void plan_gguf(const CachedRepository& repository, const CachedModel& model, RemovalPlan& plan) {
  const RepositoryLayout& layout = repository.layout;
  const fs::path snapshot = layout.snapshots() / model.commit;
  plan.models = {model.name.text()};
  const std::set<std::string> files(model.stored.files.begin(), model.stored.files.end());
  std::set<std::string> candidates;
  std::set<fs::path> removed;
  for (const PresentFile& file : files_below(snapshot, max_depth)) {
    if (!files.contains(file.path)) continue;
    if (!file.etag.empty()) candidates.insert(file.etag);
    removed.insert(file.file);
    plan.entries.push_back(file.file);
    plan.bytes += disk_bytes(file.file);
  }
  if (is_commit(model.commit)) {
    for (const HubFile& file : read_tree(layout.tree(model.commit)).value_or(std::vector<HubFile>{})) {
      if (files.contains(file.path)) candidates.insert(file.etag());
    }
  }
  add_unused_blobs(layout, candidates, removed, plan);
}

[[noreturn]] void fail_to_remove(const fs::path& path, const std::string& reason) {
  fail(ErrorKind::io, fmt::format("{}: cannot be removed: {}", path.string(), reason),
       {.why = {}, .next = "check the owner and the permissions of the cache, then run the command again"});
}

}  // namespace

RemovalPlan plan_removal(const CachedRepository& repository, const ModelName& wanted) {
  RemovalPlan plan;
  if (wanted.revision.empty() && wanted.quant.empty() && wanted.path.empty()) {
    plan_repository(repository, plan);
    return plan;
  }
  const CachedModel* model = find_cached(repository.models, wanted);
  if (model == nullptr) {
    std::string names;
    for (const CachedModel& one : repository.models) names += (names.empty() ? "" : ", ") + one.name.text();
    fail(ErrorKind::not_found, fmt::format("{}: not in the cache", wanted.text()),
         {.why = names.empty() ? "" : "available: " + names, .next = "inferno list"});
  }
  const bool names_gguf = !wanted.quant.empty() || !wanted.path.empty();
  const auto in_snapshot = std::count_if(repository.models.begin(), repository.models.end(),
                                         [&](const CachedModel& one) { return one.commit == model->commit; });
  const auto commits = std::any_of(repository.models.begin(), repository.models.end(),
                                   [&](const CachedModel& one) { return one.commit != model->commit; });
  if (names_gguf && in_snapshot > 1) {
    plan_gguf(repository, *model, plan);
  } else if (commits) {
    plan_snapshot(repository, *model, plan);
  } else {
    plan_repository(repository, plan);
  }
  return plan;
}

void carry_out(const RemovalPlan& plan) {
  std::vector<FileLock> locks;
  for (const fs::path& file : plan.locks) {
    std::error_code problem;
    if (!fs::exists(file, problem)) continue;  // no download ever used it
    auto lock = FileLock::try_take(file);
    if (!lock) {
      fail(ErrorKind::io, fmt::format("{}: a download of this model is running", plan.models.front()),
           {.why = "another process holds its lock: " + file.string(),
            .next = "wait for it or stop it, then run the command again"});
    }
    locks.push_back(std::move(*lock));
  }
  // Links are removed before the blobs they point to: after a crash a model is partial, never wrong.
  for (const auto* paths : {&plan.entries, &plan.blobs, &plan.folders}) {
    for (const fs::path& path : *paths) {
      std::error_code problem;
      fs::remove_all(path, problem);
      if (problem) fail_to_remove(path, problem.message());
    }
  }
}

}  // namespace inferno::hub
