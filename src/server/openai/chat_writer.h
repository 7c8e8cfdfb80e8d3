// The answers of POST /v1/chat/completions, as chunks of a stream or as one response.
#pragma once

#include <memory>

#include "server/generation.h"
#include "server/openai/chat_request.h"
#include "server/openai/common.h"

namespace inferno::server {

// For frame.choices answers to one prompt. `tokenizer` must outlive the writer.
std::unique_ptr<AnswerWriter> make_chat_writer(ChatOutput output, ResponseFrame frame,
                                               const Tokenizer& tokenizer);

}  // namespace inferno::server
