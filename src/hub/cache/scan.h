// The models in a hub cache, stored by Inferno, huggingface_hub (with or without trees) or @huggingface/hub
// (without refs). Reads names, sizes, refs and trees, never weights.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hub/cache/layout.h"
#include "hub/cache/stored_model.h"

namespace inferno::hub {

struct CachedModel {
  ModelName
      name;  // as a user would write it; no revision for the snapshot of refs/main, or else the newest one
  std::string commit;
  std::vector<std::string> revisions;  // refs that point to this commit
  StoredModel stored;
};

struct CachedRepository {
  ModelName name;
  RepositoryLayout layout;
  std::vector<CachedModel> models;  // those of the default snapshot first; may be empty
  std::uint64_t bytes = 0;          // on disk: every blob, partial file and plain file, counted once
  std::int64_t last_use = 0;
};

// Sorted by name. Empty if the cache does not exist; skips entries that cannot be read.
std::vector<CachedRepository> scan_cache(const std::filesystem::path& cache);

std::optional<CachedRepository> scan_repository(const std::filesystem::path& cache,
                                                const std::string& folder_name);

// The model of a repository that `wanted` names by its revision (a branch, a tag, a commit or at least 7
// digits of one) and its quantization, chosen as in select_files(). nullptr if there is none. The model may
// be incomplete.
const CachedModel* find_cached(std::span<const CachedModel> models, const ModelName& wanted);

// The cached commit of `revision`: refs/<revision>, or a snapshot of that name; for "main" without a ref, the
// newest snapshot.
std::optional<std::string> cached_commit(const RepositoryLayout& layout, std::string_view revision);

}  // namespace inferno::hub
