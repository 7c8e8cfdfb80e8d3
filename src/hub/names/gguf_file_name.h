// The information in the name of a .gguf file: its quantization, its part of a split model, and whether it is
// a model at all.
#pragma once

#include <string>
#include <string_view>

namespace inferno::hub {

struct GgufFileName {
  std::string group;  // the path without ".gguf" and "-00001-of-00003", shared by all parts of a model
  std::string stem;   // the last path component of `group`
  std::string quant;  // "Q4_K_M", "UD-IQ2_XXS", "BF16": from the stem or its folder; empty if unknown
  int part = 1, parts = 1;
  bool is_companion = false;  // not a model: a projector, an importance matrix, a draft head
};

bool is_gguf(std::string_view path);

// Requires is_gguf(path).
GgufFileName read_gguf_name(std::string_view path);

// Whether `wanted` names this model: by its quantization, the end of its stem, or the whole stem. Ignores
// case.
bool matches_quant(const GgufFileName& file, std::string_view wanted);

}  // namespace inferno::hub
