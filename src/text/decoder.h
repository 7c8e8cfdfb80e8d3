// Tokens to the bytes they add to a text. Runs once per token while loading.
#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer.h"

namespace inferno {

namespace decode {

struct ReadBytes {};     // from GPT-2's byte alphabet; a token outside it stands for itself
struct ByteFallback {};  // <0x41> is a byte
struct Replace {
  std::string pattern;
  std::string content;
};
struct Strip {
  std::string content;  // one character
  int start = 0;
  int stop = 0;
};
struct Prepend {
  std::string text;
};

}  // namespace decode

using DecoderStep =
    std::variant<decode::ReadBytes, decode::ByteFallback, decode::Replace, decode::Strip, decode::Prepend>;

struct Decoder {
  std::vector<DecoderStep> steps;
  DecodeStyle style;
  std::string bytes_of(std::string_view token) const;
};

}  // namespace inferno
