// Every model in a hub cache, whoever put it there: Inferno, huggingface_hub (with or without trees), or
// @huggingface/hub (without refs). Reads names, sizes, refs and trees; never a weight.
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
  ModelName name;  // as it can be asked for; the revision is empty for what refs/main, or else the newest, is
  std::string commit;
  std::vector<std::string> revisions;  // that lead to this commit
  StoredModel stored;
};

struct CachedRepository {
  ModelName name;
  RepositoryLayout layout;
  std::vector<CachedModel> models;  // of the default snapshot first; empty when nothing but scraps is here
  std::uint64_t bytes = 0;          // on disk: every blob, partial file and plain file once
  std::int64_t last_use = 0;
};

// Sorted by name. A cache that is not there holds none; what cannot be read is passed over.
std::vector<CachedRepository> scan_cache(const std::filesystem::path& cache);

std::optional<CachedRepository> scan_repository(const std::filesystem::path& cache,
                                                const std::string& folder_name);

// Which of the models of one repository `wanted` means: its revision (a branch, a tag, a commit or at least 7
// digits of one) and its quantization, chosen as select_files() would. nullptr when none does. Complete or
// not is not asked.
const CachedModel* find_cached(std::span<const CachedModel> models, const ModelName& wanted);

// The commit that `revision` means, for a cache as it is: refs/<revision>, or a snapshot of that name; for
// "main" without a ref, the newest.
std::optional<std::string> cached_commit(const RepositoryLayout& layout, std::string_view revision);

}  // namespace inferno::hub
