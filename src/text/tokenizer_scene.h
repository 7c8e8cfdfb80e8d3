// Small tokenizer.json texts for tests. Byte-level: every byte, then "he", "ll", "hell", "hello".
#pragma once

#include <fmt/format.h>

#include <string>

#include "text/byte_alphabet.h"

namespace inferno {

struct MadeUpParts {
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
  std::string post_processor = "null";
  std::string decoder = R"({"type":"ByteLevel"})";
  std::string added_tokens = "[]";
  std::string model = {};  // empty: byte_level_model()
};

// Ids 0..255 are the bytes, 256 "he", 257 "ll", 258 "hell", 259 "hello", 260 " hello".
inline std::string byte_level_model() {
  std::string vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string piece = byte_alphabet::write(std::string(1, static_cast<char>(byte)));
    if (piece == "\"" || piece == "\\") piece.insert(0, "\\");
    vocab += fmt::format("\"{}\":{},", piece, byte);
  }
  vocab += R"("he":256,"ll":257,"hell":258,"hello":259,"Ġhello":260)";
  return fmt::format(
      R"({{"type":"BPE","vocab":{{{}}},"merges":[["h","e"],["l","l"],["he","ll"],["hell","o"],["Ġ","hello"]]}})",
      vocab);
}

inline std::string made_up_json(const MadeUpParts& parts = {}) {
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":{},)"
      R"("pre_tokenizer":{},"post_processor":{},"decoder":{},"model":{}}})",
      parts.added_tokens, parts.normalizer, parts.pre_tokenizer, parts.post_processor, parts.decoder,
      parts.model.empty() ? byte_level_model() : parts.model);
}

}  // namespace inferno
