#include "hub/cache/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "models--";

std::string_view checked_etag(std::string_view etag) {
  if (!is_etag(etag)) {
    fail(ErrorKind::corrupt, fmt::format("{}: not a file hash", quote(etag)),
         {.why = "a hub names files by 40 or 64 hex digits", .next = "check HF_ENDPOINT: is it a hub?"});
  }
  return etag;
}

std::string_view checked_commit(std::string_view commit) {
  if (!is_commit(commit)) {
    fail(ErrorKind::corrupt, fmt::format("{}: not a commit", quote(commit)),
         {.why = "a hub names commits by 40 hex digits", .next = "check HF_ENDPOINT: is it a hub?"});
  }
  return commit;
}

}  // namespace

std::optional<std::string> id_of_folder(std::string_view folder_name) {
  if (!folder_name.starts_with(prefix)) return std::nullopt;
  std::string id(folder_name.substr(prefix.size()));
  if (const std::size_t border = id.find("--"); border != std::string::npos) id.replace(border, 2, "/");
  if (!unsafe_reason(id).empty()) return std::nullopt;
  return id;
}

RepositoryLayout::RepositoryLayout(fs::path cache, std::string folder_name)
    : cache_(std::move(cache)), folder_name_(std::move(folder_name)) {
  expects(!folder_name_.empty() && folder_name_.find('/') == std::string::npos && folder_name_ != "..",
          "a folder of the cache has a plain name");
}

fs::path RepositoryLayout::blob(std::string_view etag) const {
  return blobs() / checked_etag(etag);
}

fs::path RepositoryLayout::lock(std::string_view etag) const {
  return cache_ / ".locks" / folder_name_ / fmt::format("{}.lock", checked_etag(etag));
}

fs::path RepositoryLayout::ref(std::string_view revision) const {
  return refs() / safe_path(revision);
}

fs::path RepositoryLayout::snapshot(std::string_view commit) const {
  return snapshots() / checked_commit(commit);
}

fs::path RepositoryLayout::snapshot_file(std::string_view commit, std::string_view path) const {
  return snapshot(commit) / safe_path(path);
}

fs::path RepositoryLayout::tree(std::string_view commit) const {
  return trees() / fmt::format("{}.json", checked_commit(commit));
}

fs::path RepositoryLayout::no_exist(std::string_view commit, std::string_view path) const {
  return folder() / ".no_exist" / checked_commit(commit) / safe_path(path);
}

fs::path RepositoryLayout::link_target(std::string_view path, std::string_view etag) {
  fs::path target = "../..";
  const std::string safe = safe_path(path).generic_string();
  for (auto deeper = std::count(safe.begin(), safe.end(), '/'); deeper > 0; --deeper) target /= "..";
  return target / "blobs" / checked_etag(etag);
}

RepositoryLayout CacheLayout::repository(const ModelName& name) const {
  const auto is_bad = [](const std::string& part) {
    return !unsafe_reason(part).empty() || part.find('/') != std::string::npos ||
           part.find("--") != std::string::npos;
  };
  if (is_bad(name.name) || (!name.organization.empty() && is_bad(name.organization))) {
    fail(ErrorKind::corrupt, fmt::format("{}: not a model name", quote(name.id())));
  }
  return {root_, fmt::format("{}{}{}{}", prefix, name.organization, name.organization.empty() ? "" : "--",
                             name.name)};
}

}  // namespace inferno::hub
