// The request of POST /v1/chat/completions: its fields, and what of OpenAI's API is not supported.
#pragma once

#include <string>

#include "server/call.h"
#include "server/openai/common.h"
#include "server/shared.h"
#include "service/text_model.h"

namespace inferno::server {

// What of an answer the client wants to see, and where.
struct ChatOutput {
  ReasoningFormat reasoning_format = ReasoningFormat::both;
  bool include_reasoning = true;
  bool logprobs = false;
  bool single_call = false;  // parallel_tool_calls is false
};

struct ChatRequest {
  TextRequest request;
  std::string model;  // as the response names it
  StreamOptions stream;
  ChatOutput output;
};

// ApiError 400 for anything that cannot be done as asked, with the field's name.
ChatRequest read_chat_request(Call& call);
// The same from a body that was parsed before.
ChatRequest read_chat_request(Call& call, Json body);

// Checks an array of messages in the form of OpenAI's chat API; refusals among the parts of a message become
// text. ApiError 400 naming the message.
void check_messages(Json& messages);

}  // namespace inferno::server
