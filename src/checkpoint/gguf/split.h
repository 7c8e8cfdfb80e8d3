// How llama.cpp names the files of a split model: "name-00002-of-00003.gguf".
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inferno {

struct GgufSplitName {
  std::string stem;  // "name"
  int number = 0;    // counted from 1
  int count = 0;
};

// nullopt when the file name does not end that way.
std::optional<GgufSplitName> parse_gguf_split_name(std::string_view file_name);

std::string gguf_split_name(std::string_view stem, int number, int count);

}  // namespace inferno
