// One file of a model on the hub, and the list of all files of a commit, which the cache stores as
// trees/<commit>.json to tell a complete model from a partial one without a request to the hub.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inferno::hub {

struct HubFile {
  std::string path;  // relative to the model's root, with '/'; untrusted until it went through safe_path()
  std::uint64_t size = 0;
  std::string git_oid;  // SHA-1 of "blob <size>\0<bytes>" in hex; for a large file, of its LFS pointer
  std::string sha256;   // 64 hex digits for a large file, otherwise empty

  // The name of its blob in the cache, which is the hash of its bytes.
  const std::string& etag() const { return sha256.empty() ? git_oid : sha256; }
};

// The format of the tree is huggingface_hub's:
//   {"format_version": 1, "files": {"path": {"size": 1, "blob_id": "<git oid>", "lfs_sha256": "...",
//   "lfs_size": 1}}}
//
// nullopt if the file does not exist or is not a valid tree.
std::optional<std::vector<HubFile>> read_tree(const std::filesystem::path& file);

// nullopt for text that is not a tree. Omits files without a size or a valid hash.
std::optional<std::vector<HubFile>> parse_tree(std::string_view text);

std::string tree_text(std::span<const HubFile> files);

}  // namespace inferno::hub
