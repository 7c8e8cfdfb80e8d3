// trees/<commit>.json of the cache: all files of one commit. It is what tells a whole model from a partial
// one without asking the hub. The same format as huggingface_hub's:
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

// nullopt when there is no such file, or none that can be understood: then the model is judged by what is
// there.
std::optional<std::vector<HubFile>> read_tree(const std::filesystem::path& file);

// nullopt for text that is no tree. Files without a size or a usable hash are left out.
std::optional<std::vector<HubFile>> parse_tree(std::string_view text);

std::string tree_text(std::span<const HubFile> files);

}  // namespace inferno::hub
