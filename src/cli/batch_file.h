// The lines of `generate --batch`: one JSON object each, a request or the reason why it is none.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "chat/json.h"
#include "cli/text_request.h"

namespace inferno {

struct BatchLine {
  int number = 0;  // in the file, from 1
  Json id;         // whatever the line has as "id" or "custom_id", null otherwise
  TextRequest request;
  std::string error;  // what is wrong with the line; then there is no request
};

// What a line does not say comes from `defaults`. With `chat`, a line's "prompt" is a message of the user.
struct BatchDefaults {
  TextRequest request;
  bool chat = false;
  std::string system;
};

// Blank lines are passed over. Never fails: a bad line says so itself.
std::vector<BatchLine> parse_batch(std::string_view text, const BatchDefaults& defaults);

}  // namespace inferno
