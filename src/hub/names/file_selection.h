// Which files of a model to take. A repository often holds its weights several times; taking all would double
// or triple a download, so everything left out is named with its reason.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hub/names/hub_file.h"

namespace inferno::hub {

struct SelectionRules {
  std::string quant = {};  // of a GGUF model; empty: Q4_K_M, then Q8_0, then the first
  std::string path = {};   // one file (all its parts, when it is split); empty: the rules below
  std::vector<std::string> include = {};  // shell patterns; when there are any, they replace the rules
  std::vector<std::string> exclude = {};  // shell patterns for what is left out in any case
};

struct SkippedFile {
  HubFile file;
  std::string reason;  // "a copy of the weights for other tools"
};

enum class ModelFormat { safetensors, gguf, other };

struct FileSelection {
  std::vector<HubFile> taken;  // sorted by path; every path is safe, none is the folder of another
  std::vector<SkippedFile> skipped;
  ModelFormat format = ModelFormat::other;
  std::string quant;  // of the GGUF file taken, where its name tells

  std::uint64_t bytes() const;  // of all that is taken, each blob once
};

std::string_view name_of(ModelFormat format);

// Error{not_found} when nothing answers to the rules, with what there is; Error{unsupported} when the weights
// are in no format that is read here; Error{corrupt} when the listing contradicts itself.
FileSelection select_files(std::span<const HubFile> listing, const SelectionRules& rules = {});

// The same rules without choosing or refusing: the files of the safetensors model, none when there is none,
// and the parts of every GGUF model, some of which may be missing.
std::vector<HubFile> safetensors_files(std::span<const HubFile> listing);
std::vector<std::vector<HubFile>> gguf_models(std::span<const HubFile> listing);

// Files that explain a model and are not needed to run it.
bool is_document(std::string_view path);

// Shell patterns as Hugging Face's tools read them: '*' matches '/' too, "folder/" means all below it.
bool matches_pattern(std::string_view path, std::string_view pattern);

}  // namespace inferno::hub
