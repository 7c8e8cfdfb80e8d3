#include "hub/cache/scan.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>

#include "base/file.h"
#include "hub/cache/layout.h"
#include "hub/names/gguf_file_name.h"
#include "hub/names/hub_file.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::size_t max_files = 20'000;  // per folder; no model has more
constexpr std::uintmax_t max_index = std::uintmax_t{64} << 20;

using Present = std::unordered_map<std::string_view, const PresentFile*>;

void add_files(const fs::path& folder, const std::string& prefix, int max_depth,
               std::vector<PresentFile>& files) {
  std::error_code problem;
  for (fs::directory_iterator at(folder, problem), end; !problem && at != end; at.increment(problem)) {
    if (files.size() == max_files) return;
    const fs::path& file = at->path();
    std::string path = prefix + file.filename().string();
    struct stat status = {};
    if (::stat(file.c_str(), &status) != 0) continue;  // a dangling link
    if (S_ISDIR(status.st_mode)) {
      std::error_code ignored;
      const bool is_own = !fs::is_symlink(file, ignored) && !file.filename().string().starts_with('.');
      if (max_depth > 0 && is_own) add_files(file, path + "/", max_depth - 1, files);
    } else if (S_ISREG(status.st_mode)) {
      std::error_code not_a_link;
      const std::string target = fs::read_symlink(file, not_a_link).filename().string();
      files.push_back({.path = std::move(path),
                       .file = file,
                       .size = static_cast<std::uint64_t>(status.st_size),
                       .etag = !not_a_link && is_etag(target) ? target : "",
                       .last_use = status.st_atime,
                       .is_link = !not_a_link});
    }
  }
}

// The shards that model.safetensors.index.json names.
std::set<std::string> shards_in_index(const Present& present) {
  std::set<std::string> shards;
  const auto index = present.find("model.safetensors.index.json");
  if (index == present.end() || index->second->size > max_index) return shards;
  const std::string text = read_start(index->second->file, index->second->size).value_or("");
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object()) return shards;
  for (const auto& [tensor, shard] : json["weight_map"].items()) {
    if (shard.is_string() && unsafe_reason(shard.get_ref<const std::string&>()).empty()) shards.insert(shard);
  }
  return shards;
}

// "model-00002-of-00003.safetensors" implies three shards.
std::set<std::string> shards_by_number(const Present& present) {
  std::set<std::string> shards;
  for (const auto& [path, file] : present) {
    constexpr std::string_view ending = ".safetensors";
    if (!path.ends_with(ending) || path.find('/') != std::string_view::npos) continue;
    const std::string as_gguf = std::string(path.substr(0, path.size() - ending.size())) + ".gguf";
    const GgufFileName name = read_gguf_name(as_gguf);
    if (name.parts < 2 || name.parts > 10'000) continue;
    shards.insert(name.group + ".safetensors.index.json");
    for (int part = 1; part <= name.parts; ++part) {
      shards.insert(fmt::format("{}-{:05}-of-{:05}.safetensors", name.group, part, name.parts));
    }
  }
  return shards;
}

// The expected files, inferred from the present ones.
std::vector<HubFile> guessed_listing(const FolderFacts& facts, const Present& present) {
  std::vector<HubFile> listing;
  for (const PresentFile& file : facts.present) listing.push_back({file.path, file.size, file.etag, ""});
  std::set<std::string> expected = shards_in_index(present);
  if (expected.empty()) expected = shards_by_number(present);
  for (const PresentFile& file : facts.present) {
    if (!is_gguf(file.path)) continue;
    const GgufFileName name = read_gguf_name(file.path);
    if (name.parts < 2 || name.parts > 10'000) continue;
    for (int part = 1; part <= name.parts; ++part) {
      expected.insert(fmt::format("{}-{:05}-of-{:05}.gguf", name.group, part, name.parts));
    }
  }
  const auto has = [&](std::string_view suffix) {
    return std::any_of(listing.begin(), listing.end(), [&](const HubFile& file) {
      return file.path.ends_with(suffix) && file.path.find('/') == std::string::npos;
    });
  };
  if (has(".safetensors") || has(".safetensors.index.json")) expected.insert("config.json");
  for (const std::string& path : expected) {
    if (!present.contains(path)) listing.push_back({path, 0, "", ""});
  }
  return listing;
}

bool matches(const HubFile& wanted, const PresentFile& file, bool is_listed) {
  if (!is_listed) return true;
  return file.size == wanted.size && (!file.is_link || file.etag == wanted.etag());
}

// The model that consists of `wanted`, and which of these files are present.
StoredModel model_of(const FolderFacts& facts, const Present& present, const std::vector<HubFile>& wanted) {
  StoredModel model;
  std::set<std::string> counted;
  for (const HubFile& file : wanted) {
    model.files.push_back(file.path);
    const bool is_first = file.etag().empty() || counted.insert(file.etag()).second;
    if (is_first) model.whole_bytes += file.size;
    const auto found = present.find(file.path);
    const bool is_here = found != present.end() && matches(file, *found->second, facts.listing.has_value());
    if (is_here) {
      if (is_first) model.bytes += found->second->size;
      model.last_use = std::max(model.last_use, found->second->last_use);
    } else if (!is_document(file.path)) {
      model.missing.push_back(file.path);
      if (is_first && facts.bytes_elsewhere) model.bytes += std::min(file.size, facts.bytes_elsewhere(file));
    }
  }
  if (!facts.listing && !model.missing.empty()) model.whole_bytes = 0;
  return model;
}

bool has_weights(const StoredModel& model) {
  return std::any_of(model.files.begin(), model.files.end(),
                     [](const std::string& path) { return path.ends_with(".safetensors") || is_gguf(path); });
}

constexpr std::size_t max_entries = 20'000;  // per folder
constexpr int max_repository_depth = 8, min_commit_digits = 7;

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
  for (const PresentFile& file : files_below(layout.refs(), max_repository_depth)) {
    const std::string commit = first_line(file.file);
    if (is_snapshot_name(commit)) refs[file.path] = commit;
  }
  return refs;
}

// The newest entry of a folder whose name `accepts`; empty if there is none.
std::string newest_in(const fs::path& folder, const std::function<bool(const std::string&)>& accepts) {
  std::string newest;
  fs::file_time_type newest_time;
  for (const std::string& name : names_in(folder)) {
    std::error_code problem;
    const fs::file_time_type time = fs::last_write_time(folder / name, problem);
    if (problem || !accepts(name) || (!newest.empty() && time <= newest_time)) continue;
    newest = name;
    newest_time = time;
  }
  return newest;
}

// The commit of "trees/<commit>.json"; empty for other names.
std::string commit_of_tree(const std::string& name) {
  constexpr std::string_view suffix = ".json";
  if (!name.ends_with(suffix)) return "";
  const std::string commit = name.substr(0, name.size() - suffix.size());
  return is_commit(commit) ? commit : "";
}

// A download that was stopped before its first file has a tree, but neither a ref nor a snapshot.
std::string newest_commit(const RepositoryLayout& layout) {
  const std::string snapshot = newest_in(layout.snapshots(), is_snapshot_name);
  if (!snapshot.empty()) return snapshot;
  const auto is_tree = [](const std::string& name) { return !commit_of_tree(name).empty(); };
  return commit_of_tree(newest_in(layout.trees(), is_tree));
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
  facts.present = files_below(facts.folder, max_repository_depth);
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
    if (const std::string commit = commit_of_tree(name); !commit.empty()) all[commit].commit = commit;
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
  for (const PresentFile& file : files_below(repository.layout.snapshots(), max_repository_depth)) {
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

std::vector<PresentFile> files_below(const fs::path& folder, int max_depth) {
  std::vector<PresentFile> files;
  add_files(folder, "", max_depth, files);
  std::sort(files.begin(), files.end(),
            [](const PresentFile& a, const PresentFile& b) { return a.path < b.path; });
  return files;
}

bool has_unfinished_download(const fs::path& folder) {
  for (const PresentFile& file : files_below(folder / ".cache/huggingface/download", 4)) {
    if (file.path.ends_with(".incomplete")) return true;
  }
  return false;
}

std::vector<StoredModel> models_in(const FolderFacts& facts) {
  Present present;
  for (const PresentFile& file : facts.present) present.emplace(file.path, &file);
  const std::vector<HubFile> listing = facts.listing ? *facts.listing : guessed_listing(facts, present);
  std::vector<StoredModel> models;
  StoredModel whole = model_of(facts, present, safetensors_files(listing));
  if (has_weights(whole) && whole.bytes > 0) {
    whole.format = ModelFormat::safetensors;
    whole.path = facts.folder;
    models.push_back(std::move(whole));
  }
  for (const std::vector<HubFile>& parts : gguf_models(listing)) {
    StoredModel model = model_of(facts, present, parts);
    if (model.bytes == 0) continue;
    const GgufFileName name = read_gguf_name(parts.front().path);
    model.format = ModelFormat::gguf;
    model.quant = name.quant;
    model.stem = name.stem;
    model.path = facts.folder / parts.front().path;
    models.push_back(std::move(model));
  }
  return models;
}

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
  const std::string newest = newest_commit(layout);
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
  if (slash != std::string::npos) name.organization = id->substr(0, slash);
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
