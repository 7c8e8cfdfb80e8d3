// The answers of POST /v1/completions, as chunks of a stream or as one response.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "server/generation.h"
#include "server/openai/common.h"

namespace inferno::server {

struct CompletionOutput {
  std::size_t prompts = 1;
  std::vector<std::string> echoes;  // the text of each prompt, to begin its answers with; empty: none
  bool logprobs = false;
  bool only_echo = false;  // max_tokens is 0: the prompt and its log probabilities
};

// For frame.choices answers to each prompt. `tokenizer` must outlive the writer.
std::unique_ptr<AnswerWriter> make_completion_writer(CompletionOutput output, ResponseFrame frame,
                                                     const Tokenizer& tokenizer);

}  // namespace inferno::server
