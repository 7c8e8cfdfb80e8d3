// The fields of Anthropic's Messages API, read into a request for the model.
#pragma once

#include <string>
#include <vector>

#include "chat/json.h"
#include "server/anthropic/messages_stream.h"
#include "server/call.h"
#include "service/text_model.h"

namespace inferno::server {

// A conversation in the form of OpenAI's chat API, which the chat formats take.
struct MessagesConversation {
  Json messages = Json::array();
  std::vector<std::string> ignored;  // paths of what was left out
  bool ends_with_assistant = false;  // the answer continues the last message
};

// `system` may be nullptr. ApiError 400 names the path of the block that is malformed or not
// text. Consecutive messages of one role become one, as Anthropic has it.
MessagesConversation read_conversation(const Json* system, const Json& messages);

// Puts instructions that follow other messages into messages of the user, tagged as agents tag them: many
// templates accept a system message only at the beginning. False if there are none.
bool inline_instructions(Json& messages);

enum class MessagesRoute { answer, count_tokens };

struct MessagesRequest {
  std::string model;  // the name that the response has
  TextRequest text;
  ThinkingDisplay thinking = ThinkingDisplay::shown;
  bool streams = false;
  bool single_call = false;  // further calls are left out
};

// ApiError 400 for fields that are malformed, missing, or not supported and would change the answer; 404 for
// an unknown model. Fields without effect are named in the call. `body` must outlive the call of this
// function only.
MessagesRequest read_messages(const Json& body, MessagesRoute route, const TextModel& model, Call& call);

}  // namespace inferno::server
