// Removing models from a hub cache. Snapshots share blobs, so a blob is removed only if no link to it is
// left.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/cache/scan.h"

namespace inferno::hub {

struct RemovalPlan {
  std::vector<std::string> models;             // names of the models to remove
  std::vector<std::filesystem::path> entries;  // refs, links, trees, snapshots: removed first
  std::vector<std::filesystem::path> blobs;    // blobs and partial files without other links: removed second
  std::vector<std::filesystem::path> folders;  // folders left empty
  std::vector<std::filesystem::path> locks;    // locks that a download of these blobs would hold
  std::uint64_t bytes = 0;                     // disk space to be freed
  std::uint64_t kept_bytes = 0;                // used by other models too, so not freed
};

// `wanted` without revision and quantization: the whole repository. With a revision: that snapshot. With a
// quantization or a file: that GGUF model, and its snapshot if it has no other model. Error{not_found} if the
// cache has no such model.
RemovalPlan plan_removal(const CachedRepository& repository, const ModelName& wanted);

// Error{io} if an entry cannot be removed or the model is being downloaded. An interrupted removal leaves a
// partial model, which a second removal finishes.
void carry_out(const RemovalPlan& plan);

}  // namespace inferno::hub
