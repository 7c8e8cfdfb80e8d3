// trees/<commit>.json of the cache: all files of one commit, which tells a complete model from a partial one
// without a request to the hub. The format is huggingface_hub's:
//   {"format_version": 1, "files": {"path": {"size": 1, "blob_id": "<git oid>", "lfs_sha256": "...",
//   "lfs_size": 1}}}
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/names/hub_file.h"

namespace inferno::hub {

// nullopt if the file does not exist or is not a valid tree.
std::optional<std::vector<HubFile>> read_tree(const std::filesystem::path& file);

// nullopt for text that is not a tree. Omits files without a size or a valid hash.
std::optional<std::vector<HubFile>> parse_tree(std::string_view text);

std::string tree_text(std::span<const HubFile> files);

}  // namespace inferno::hub
