// Which files of a repository to fetch. A repository often has its weights in several formats; fetching all
// of them would double or triple a download. Every skipped file gets a reason.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/names/hub_file.h"

namespace inferno::hub {

struct SelectionRules {
  std::string model = "this model";       // what errors call it
  std::string quant = {};                 // of a GGUF model; empty: Q4_K_M, then Q8_0, then the first one
  std::string path = {};                  // one file with all its parts; empty: the rules below
  std::vector<std::string> include = {};  // shell patterns that replace the rules if there are any
  std::vector<std::string> exclude = {};  // shell patterns for files that are always skipped
};

struct SkippedFile {
  HubFile file;
  std::string reason;  // "a copy of the weights for other tools"
};

enum class ModelFormat { safetensors, gguf, other };

struct FileSelection {
  std::vector<HubFile> taken;  // sorted by path; every path is safe, and none is a folder of another one
  std::vector<SkippedFile> skipped;
  ModelFormat format = ModelFormat::other;
  std::string quant;  // of the selected GGUF file, if its name tells

  std::uint64_t bytes() const;  // of all selected files, each blob counted once
};

std::string_view name_of(ModelFormat format);

// Error{not_found} listing the alternatives if no file matches the rules; Error{unsupported} if no weights
// are in a supported format; Error{corrupt} if the listing contradicts itself.
FileSelection select_files(std::span<const HubFile> listing, const SelectionRules& rules = {});

// The same rules without a choice or an error: the files of the safetensors model, if there is one, and the
// parts of every GGUF model, some of which may be missing.
std::vector<HubFile> safetensors_files(std::span<const HubFile> listing);
std::vector<std::vector<HubFile>> gguf_models(std::span<const HubFile> listing);

// Documentation and licenses, which are not needed to run a model.
bool is_document(std::string_view path);

// Shell patterns as in Hugging Face's tools: '*' matches '/' too, and "folder/" matches everything below it.
bool matches_pattern(std::string_view path, std::string_view pattern);

}  // namespace inferno::hub
