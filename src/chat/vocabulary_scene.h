// For tests: a vocabulary of all bytes and a few control tokens.
#pragma once

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace inferno {

inline std::unique_ptr<Tokenizer> vocabulary_with(std::initializer_list<std::string_view> controls) {
  std::string added;
  int id = 261;
  for (const std::string_view control : controls) {
    added += (added.empty() ? "" : ",") + std::string(R"({"id":)") + std::to_string(id++) +
             R"(,"content":")" + std::string(control) + R"(","special":true,"normalized":false})";
  }
  return parse_tokenizer(made_up_json({.added_tokens = "[" + added + "]"}), "made-up tokenizer.json");
}

inline std::unique_ptr<Tokenizer> harmony_vocabulary() {
  return vocabulary_with({"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>",
                          "<|call|>", "<|endoftext|>"});
}

}  // namespace inferno
