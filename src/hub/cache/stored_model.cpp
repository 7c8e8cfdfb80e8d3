#include "hub/cache/stored_model.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <unordered_map>

#include "hub/cache/layout.h"
#include "hub/names/gguf_file_name.h"
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
  std::ifstream in(index->second->file, std::ios::binary);
  const Json json = Json::parse(in, nullptr, /*allow_exceptions=*/false);
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
StoredModel stored(const FolderFacts& facts, const Present& present, const std::vector<HubFile>& wanted) {
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
  StoredModel whole = stored(facts, present, safetensors_files(listing));
  if (has_weights(whole) && whole.bytes > 0) {
    whole.format = ModelFormat::safetensors;
    whole.path = facts.folder;
    models.push_back(std::move(whole));
  }
  for (const std::vector<HubFile>& parts : gguf_models(listing)) {
    StoredModel model = stored(facts, present, parts);
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

}  // namespace inferno::hub
