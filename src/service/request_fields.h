// Requests as JSON objects: the lines of a batch file and the requests of the library, under the names of the
// server's fields.
#pragma once

#include <string>

#include "chat/json.h"
#include "service/text_model.h"

namespace inferno {

// Used for everything that an object does not set. With `chat`, its "prompt" is a user message.
struct RequestDefaults {
  TextRequest request;
  Json constraint = {};  // null or the fields of read_constraint()
  bool chat = false;
  std::string system;
};

// The fields: "prompt" (a text, or an array of token ids) or "messages"; "chat", "system", "think",
// "reasoning_effort", "parse_special", "cache_prompt", "cache_salt", "chat_template_kwargs",
// "continue_final_message"; those of set_sampling() and read_constraint(). Error{invalid_request} naming the
// field if it is unknown or its value is wrong.
TextRequest read_request(const Json& object, const RequestDefaults& defaults);

// The same error for one field, before the request is complete.
void check_request_field(const std::string& name, const Json& value);

}  // namespace inferno
