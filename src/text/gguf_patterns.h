// tokenizer.ggml.pre names a way of splitting text. GGUF stores only the name; what it means is in here.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace inferno {

struct GgufSplit {
  std::string_view name;
  std::span<const std::string_view> patterns;  // applied one after the other, matches stay whole
  bool ignore_merges = false;
  bool add_bos = false;  // unless the file says otherwise
  bool nfc = false;      // the original's tokenizer.json normalizes first
};

// Error{unsupported} listing the known names when `name` is none of them. An empty name is "default".
const GgufSplit& find_split(std::string_view name, std::string_view file);

// The other direction: an entry with exactly these patterns, if possible one that agrees about merges, too.
// Null when there is none.
const GgufSplit* find_split_by_patterns(std::span<const std::string> patterns, bool nfc, bool ignore_merges);

}  // namespace inferno
