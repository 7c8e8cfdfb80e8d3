// Small tokenizer.json texts for tests. Byte-level: every byte, then "he", "ll", "hell", "hello".
#pragma once

#include <string>

namespace inferno {

struct MadeUpParts {
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})";
  std::string post_processor = "null";
  std::string decoder = R"({"type":"ByteLevel"})";
  std::string added_tokens = "[]";
  std::string model = {};  // the made-up byte-level BPE when empty
};

// Ids 0..255 are the bytes, 256 "he", 257 "ll", 258 "hell", 259 "hello", 260 " hello".
std::string byte_level_model();
std::string made_up_json(const MadeUpParts& parts = {});

}  // namespace inferno
