#include "hub/cache/scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <set>
#include <system_error>

#include "base/file.h"
#include "hub/cache/tree_file.h"
#include "hub/names/gguf_file_name.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_entries = 20'000;  // per folder
constexpr int max_depth = 8, min_commit_digits = 7;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    names.push_back(at->path().filename().string());
    if (names.size() == max_entries) break;
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Commits are 40 hex digits, but a tool may name a snapshot differently: any plain name is accepted.
bool is_snapshot_name(std::string_view name) {
  return unsafe_reason(name).empty() && name.find('/') == std::string_view::npos && !name.starts_with('.');
}

std::string first_line(const fs::path& file) {
  const std::string line = read_start(file, 64).value_or("");
  return line.substr(0, line.find_first_of("\r\n"));
}

// {"main": commit, "refs/pr/1": commit}
std::map<std::string, std::string> read_refs(const RepositoryLayout& layout) {
  std::map<std::string, std::string> refs;
  for (const PresentFile& file : files_below(layout.refs(), max_depth)) {
    const std::string commit = first_line(file.file);
    if (is_snapshot_name(commit)) refs[file.path] = commit;
  }
  return refs;
}

std::string newest_snapshot(const RepositoryLayout& layout) {
  std::string newest;
  fs::file_time_type newest_time;
  for (const std::string& name : names_in(layout.snapshots())) {
    std::error_code problem;
    const fs::file_time_type time = fs::last_write_time(layout.snapshots() / name, problem);
    if (problem || !is_snapshot_name(name) || (!newest.empty() && time <= newest_time)) continue;
    newest = name;
    newest_time = time;
  }
  return newest;
}

// A partial file has holes for missing ranges, so its blocks count, not its length.
std::uint64_t bytes_on_disk(const fs::path& file) {
  struct stat status = {};
  if (::stat(file.c_str(), &status) != 0) return 0;
  return std::min(static_cast<std::uint64_t>(status.st_size),
                  static_cast<std::uint64_t>(status.st_blocks) * 512);
}

// Bytes in blobs/ for each hash: of the complete file, or of Inferno's partial files
// ("<etag>.<x>.inferno.incomplete").
std::map<std::string, std::uint64_t> blob_bytes(const RepositoryLayout& layout) {
  std::map<std::string, std::uint64_t> bytes;
  for (const std::string& name : names_in(layout.blobs())) {
    const std::string etag = name.substr(0, name.find('.'));
    const bool counts = name == etag || name.ends_with(".inferno.incomplete");
    if (counts && is_etag(etag)) bytes[etag] += bytes_on_disk(layout.blobs() / name);
  }
  return bytes;
}

// Names GGUF models of one snapshot by quantization, or by file if two have the same quantization.
void name_gguf_models(std::vector<CachedModel>& models) {
  std::map<std::string, int> quants;
  for (const CachedModel& model : models) ++quants[model.stored.quant];
  for (CachedModel& model : models) {
    if (model.stored.format != ModelFormat::gguf) continue;
    const bool is_unique = !model.stored.quant.empty() && quants[model.stored.quant] == 1;
    model.name.quant = is_unique ? model.stored.quant : model.stored.stem;
  }
}

struct Snapshot {
  std::string commit;
  std::vector<std::string> revisions;
  bool is_default = false;
};

std::vector<CachedModel> models_of(const CachedRepository& repository, const Snapshot& snapshot) {
  const RepositoryLayout& layout = repository.layout;
  FolderFacts facts = {
      .folder = layout.snapshots() / snapshot.commit, .present = {}, .listing = {}, .bytes_elsewhere = {}};
  facts.present = files_below(facts.folder, max_depth);
  if (is_commit(snapshot.commit)) facts.listing = read_tree(layout.tree(snapshot.commit));
  facts.bytes_elsewhere = [bytes = blob_bytes(layout)](const HubFile& file) {
    const auto found = bytes.find(file.etag());
    return found == bytes.end() ? 0 : found->second;
  };
  std::vector<CachedModel> models;
  for (StoredModel& stored : models_in(facts)) {
    models.push_back({repository.name, snapshot.commit, snapshot.revisions, std::move(stored)});
  }
  name_gguf_models(models);
  if (!snapshot.is_default) {
    const std::string revision =
        snapshot.revisions.empty() ? snapshot.commit.substr(0, 12) : snapshot.revisions.front();
    for (CachedModel& model : models) model.name.revision = revision;
  }
  return models;
}

// The default snapshot first, then by name.
std::vector<Snapshot> snapshots_of(const RepositoryLayout& layout) {
  std::map<std::string, Snapshot> all;
  for (const std::string& name : names_in(layout.snapshots())) {
    if (is_snapshot_name(name)) all[name].commit = name;
  }
  for (const std::string& name : names_in(layout.trees())) {
    if (!name.ends_with(".json") || !is_commit(name.substr(0, name.size() - 5))) continue;
    const std::string commit = name.substr(0, name.size() - 5);
    all[commit].commit = commit;
  }
  for (const auto& [revision, commit] : read_refs(layout)) {
    if (all.contains(commit)) all[commit].revisions.push_back(revision);
  }
  const std::string main = cached_commit(layout, "main").value_or("");
  std::vector<Snapshot> sorted;
  for (auto& [commit, snapshot] : all) {
    snapshot.is_default = commit == main;
    sorted.push_back(std::move(snapshot));
  }
  std::stable_partition(sorted.begin(), sorted.end(), [](const Snapshot& one) { return one.is_default; });
  return sorted;
}

// Counts every file once: blobs, and regular files in snapshots without links.
void measure(CachedRepository& repository) {
  for (const PresentFile& blob : files_below(repository.layout.blobs(), 0)) {
    repository.bytes += bytes_on_disk(blob.file);
    if (is_etag(blob.path)) repository.last_use = std::max(repository.last_use, blob.last_use);
  }
  for (const PresentFile& file : files_below(repository.layout.snapshots(), max_depth)) {
    std::error_code problem;
    if (fs::is_symlink(file.file, problem)) continue;
    repository.bytes += bytes_on_disk(file.file);
    repository.last_use = std::max(repository.last_use, file.last_use);
  }
}

bool matches_revision(const CachedModel& model, const std::string& revision) {
  if (revision.empty()) return model.name.revision.empty();
  if (std::find(model.revisions.begin(), model.revisions.end(), revision) != model.revisions.end())
    return true;
  if (model.commit == revision) return true;
  if (revision == "main" && model.name.revision.empty()) return true;
  return revision.size() >= min_commit_digits && model.commit.starts_with(revision);
}

const CachedModel* find_by_quant(const std::vector<const CachedModel*>& models, std::string_view quant) {
  const CachedModel* best = nullptr;
  for (const CachedModel* model : models) {
    if (model->stored.format != ModelFormat::gguf) continue;
    const GgufFileName name = {.group = {}, .stem = model->stored.stem, .quant = model->stored.quant};
    if (!matches_quant(name, quant)) continue;
    if (best == nullptr || model->stored.stem.size() < best->stored.stem.size()) best = model;
  }
  return best;
}

}  // namespace

std::optional<std::string> cached_commit(const RepositoryLayout& layout, std::string_view revision) {
  std::error_code problem;
  if (unsafe_reason(revision).empty()) {
    const std::string commit = first_line(layout.ref(revision));
    const bool is_here =
        is_snapshot_name(commit) && (fs::is_directory(layout.snapshots() / commit, problem) ||
                                     (is_commit(commit) && fs::exists(layout.tree(commit), problem)));
    if (is_here) return commit;
  }
  if (is_snapshot_name(revision) && fs::is_directory(layout.snapshots() / revision, problem)) {
    return std::string(revision);
  }
  if (revision != "main") return std::nullopt;
  const std::string newest = newest_snapshot(layout);
  return newest.empty() ? std::nullopt : std::optional(newest);
}

std::optional<CachedRepository> scan_repository(const fs::path& cache, const std::string& folder_name) {
  const auto id = id_of_folder(folder_name);
  std::error_code problem;
  if (!id || folder_name.find('/') != std::string::npos || !fs::is_directory(cache / folder_name, problem)) {
    return std::nullopt;
  }
  const std::size_t slash = id->find('/');
  ModelName name;
  if (slash != std::string::npos) name.organisation = id->substr(0, slash);
  name.name = slash == std::string::npos ? *id : id->substr(slash + 1);
  CachedRepository repository = {name, RepositoryLayout(cache, folder_name), {}, 0, 0};
  for (const Snapshot& snapshot : snapshots_of(repository.layout)) {
    for (CachedModel& model : models_of(repository, snapshot)) repository.models.push_back(std::move(model));
  }
  measure(repository);
  return repository;
}

std::vector<CachedRepository> scan_cache(const fs::path& cache) {
  std::vector<CachedRepository> repositories;
  for (const std::string& name : names_in(cache)) {
    if (auto repository = scan_repository(cache, name)) repositories.push_back(std::move(*repository));
  }
  return repositories;
}

const CachedModel* find_cached(std::span<const CachedModel> all, const ModelName& wanted) {
  std::vector<const CachedModel*> models;
  for (const CachedModel& model : all) {
    if (matches_revision(model, wanted.revision)) models.push_back(&model);
  }
  if (!wanted.path.empty()) {
    for (const CachedModel* model : models) {
      const auto& files = model->stored.files;
      if (std::find(files.begin(), files.end(), wanted.path) != files.end()) return model;
    }
    return nullptr;
  }
  if (!wanted.quant.empty()) return find_by_quant(models, wanted.quant);
  for (const CachedModel* model : models) {
    if (model->stored.format == ModelFormat::safetensors) return model;
  }
  for (const std::string_view preferred : {"Q4_K_M", "Q8_0"}) {
    if (const CachedModel* model = find_by_quant(models, preferred)) return model;
  }
  return models.empty() ? nullptr : models.front();
}

}  // namespace inferno::hub
