// The models that the files of a folder form, complete or with a list of missing files. Reads names and sizes
// only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

}  // namespace inferno::hub
