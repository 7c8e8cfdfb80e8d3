#include "hub/names/hub_file.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uintmax_t max_tree_bytes = std::uintmax_t{64} << 20;

std::string hash_at(const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_string()) return "";
  const auto& text = found->get_ref<const std::string&>();
  return is_etag(text) ? text : "";
}

std::optional<HubFile> file_of(const std::string& path, const Json& entry) {
  if (!entry.is_object()) return std::nullopt;
  const Json& size = entry.contains("lfs_size") ? entry["lfs_size"]
                     : entry.contains("size")   ? entry["size"]
                                                : Json();
  HubFile file = {
      .path = path, .size = 0, .git_oid = hash_at(entry, "blob_id"), .sha256 = hash_at(entry, "lfs_sha256")};
  if (!size.is_number_unsigned() || file.etag().empty()) return std::nullopt;
  file.size = size.get<std::uint64_t>();
  return file;
}

}  // namespace

std::optional<std::vector<HubFile>> read_tree(const fs::path& file) {
  std::error_code problem;
  const std::uintmax_t size = fs::file_size(file, problem);
  if (problem || size > max_tree_bytes) return std::nullopt;
  const auto text = read_start(file, static_cast<std::size_t>(size));
  return text ? parse_tree(*text) : std::nullopt;
}

std::optional<std::vector<HubFile>> parse_tree(std::string_view text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("format_version") || json["format_version"] != 1)
    return std::nullopt;
  const auto files = json.find("files");
  if (files == json.end() || !files->is_object()) return std::nullopt;
  std::vector<HubFile> all;
  for (const auto& [path, entry] : files->items()) {
    if (auto file = file_of(path, entry)) all.push_back(std::move(*file));
  }
  return all;
}

std::string tree_text(std::span<const HubFile> files) {
  Json entries = Json::object();
  for (const HubFile& file : files) {
    Json entry = {{"size", file.size}, {"blob_id", file.git_oid}};
    if (!file.sha256.empty()) {
      entry["lfs_sha256"] = file.sha256;
      entry["lfs_size"] = file.size;
    }
    entries[file.path] = std::move(entry);
  }
  const Json tree = {{"format_version", 1}, {"files", std::move(entries)}};
  return tree.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace inferno::hub
