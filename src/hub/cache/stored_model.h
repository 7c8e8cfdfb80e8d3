// From the files of a folder to the models they are: whole, or what is missing. Looks at names and sizes
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
  std::string path;            // below the folder
  std::filesystem::path file;  // where it is; a link is not followed in the name
  std::uint64_t size = 0;
  std::string etag = {};      // of the blob it links to; empty for a file of its own
  std::int64_t last_use = 0;  // seconds since 1970; 0 when not known
  bool is_link = false;
};

struct StoredModel {
  ModelFormat format = ModelFormat::other;
  std::string quant;           // of a GGUF model, where its name tells
  std::string stem;            // of a GGUF model: its file's name without ".gguf" and part numbers
  std::filesystem::path path;  // what open_checkpoint() takes
  std::vector<std::string> files;
  std::vector<std::string>
      missing;                    // not there, or not of the right size or content; empty: the model is whole
  std::uint64_t bytes = 0;        // that are here, each blob once
  std::uint64_t whole_bytes = 0;  // that there should be; 0 when not known
  std::int64_t last_use = 0;

  bool is_complete() const { return missing.empty(); }
};

// All regular files, and links to such, `deepest` folders down. Hidden folders are passed over, and so is
// whatever cannot be read.
std::vector<PresentFile> files_below(const std::filesystem::path& folder, int deepest);

// Whether a download with --local-dir, ours or of Hugging Face's tools, left something unfinished in this
// folder.
bool has_unfinished_download(const std::filesystem::path& folder);

// What is known about a folder. `listing` is all that belongs to the model, when that is known; without it
// the index of shards and the numbers in names say what should be there.
struct FolderFacts {
  std::filesystem::path folder;
  std::vector<PresentFile> present;
  std::optional<std::vector<HubFile>> listing;
  // How many bytes of a file that is not in the folder are on disk all the same.
  std::function<std::uint64_t(const HubFile&)> bytes_elsewhere;
};

// The safetensors model first, then the GGUF models by name. Models of which nothing is here are left out.
std::vector<StoredModel> models_in(const FolderFacts& facts);

}  // namespace inferno::hub
