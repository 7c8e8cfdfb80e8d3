// What the name of a .gguf file says: its quantization, which part of a split model it is, whether it is a
// model.
#pragma once

#include <string>
#include <string_view>

namespace inferno::hub {

struct GgufFileName {
  std::string group;  // the path without ".gguf" and "-00001-of-00003": the same for all parts of one model
  std::string stem;   // the last part of `group`
  std::string
      quant;  // "Q4_K_M", "UD-IQ2_XXS", "BF16"; from the stem or else its folder; empty when neither says
  int part = 1, parts = 1;
  bool is_companion = false;  // GGUF, but no model: a projector, an importance matrix, a draft head
};

bool is_gguf(std::string_view path);

// Of a path for which is_gguf() holds.
GgufFileName read_gguf_name(std::string_view path);

// Whether a user who asks for `wanted` means this model: its quantization, the end of its stem, or all of it.
// Case does not matter.
bool answers_to_quant(const GgufFileName& file, std::string_view wanted);

}  // namespace inferno::hub
