// The models on disk. models_in() groups the files of any folder into models, complete or with a list of
// missing files; scan_cache() does so for a hub cache, written by Inferno, by huggingface_hub (with or
// without trees) or by its JavaScript client (without refs). Reads names, sizes, refs and trees, never
// weights.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "hub/cache/layout.h"
#include "hub/names/file_selection.h"

namespace inferno::hub {

struct PresentFile {
  std::string path;            // relative to the folder
  std::filesystem::path file;  // the file or link itself
  std::uint64_t size = 0;
  std::string etag = {};      // of the blob that a link points to; empty for a regular file
  std::int64_t last_use = 0;  // seconds since 1970; 0 if unknown
  bool is_link = false;
};

struct StoredModel {
  ModelFormat format = ModelFormat::other;
  std::string quant;           // of a GGUF model, if its name tells
  std::string stem;            // of a GGUF model: the file name without ".gguf" and part numbers
  std::filesystem::path path;  // argument of open_checkpoint()
  std::vector<std::string> files;
  std::vector<std::string> missing;  // absent, or of another size or hash; empty if the model is complete
  std::uint64_t bytes = 0;           // present, each blob counted once
  std::uint64_t whole_bytes = 0;     // expected; 0 if unknown
  std::int64_t last_use = 0;

  bool is_complete() const { return missing.empty(); }
};

// All regular files and links to regular files, down to `max_depth` subfolders. Skips hidden folders and
// entries that cannot be read.
std::vector<PresentFile> files_below(const std::filesystem::path& folder, int max_depth);

// Whether Inferno or Hugging Face's tools left an unfinished download (--local-dir) in this folder.
bool has_unfinished_download(const std::filesystem::path& folder);

// What is known about a folder. `listing` is the complete list of files, if known; without it the index of
// shards and the part numbers in file names tell which files are expected.
struct FolderFacts {
  std::filesystem::path folder;
  std::vector<PresentFile> present;
  std::optional<std::vector<HubFile>> listing;
  // Bytes on disk of a file that is not in the folder.
  std::function<std::uint64_t(const HubFile&)> bytes_elsewhere;
};

// The safetensors model first, then the GGUF models by name. Omits models without any bytes.
std::vector<StoredModel> models_in(const FolderFacts& facts);

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
// newest snapshot, or else the newest tree.
std::optional<std::string> cached_commit(const RepositoryLayout& layout, std::string_view revision);

}  // namespace inferno::hub
