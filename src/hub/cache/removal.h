// Taking models out of a hub cache. Snapshots share blobs, so a blob goes only when no link is left that
// leads to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "hub/cache/scan.h"

namespace inferno::hub {

struct RemovalPlan {
  std::vector<std::string> models;             // by name: what will be gone
  std::vector<std::filesystem::path> entries;  // refs, links, trees, whole snapshots: removed first
  std::vector<std::filesystem::path> blobs;    // that nothing else leads to, partial ones too: removed then
  std::vector<std::filesystem::path> folders;  // that will be empty
  std::vector<std::filesystem::path> locks;    // that a download of these blobs would hold
  std::uint64_t bytes = 0;                     // that will be free
  std::uint64_t kept_bytes = 0;                // of these models, used by others too
};

// `wanted` without revision and quantization: all of the model. With a revision: that snapshot. With a
// quantization or a file: that GGUF model, and the snapshot when it holds no other. Error{not_found} when
// none of it is here.
RemovalPlan plan_removal(const CachedRepository& repository, const ModelName& wanted);

// Error{io} when something cannot be removed, or is being downloaded at this moment. What is interrupted
// leaves a partial model, which a second removal finishes.
void carry_out(const RemovalPlan& plan);

}  // namespace inferno::hub
