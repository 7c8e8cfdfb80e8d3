// The lines of `generate --batch`: one JSON object each, a request or the reason why it is none.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/json.h"
#include "cli/sampling_settings.h"

namespace inferno {

// What is to be answered: a text to complete or a conversation.
struct TextRequest {
  std::optional<std::string> prompt;  // else `messages`
  Json messages;
  Json tools;
  std::string reasoning_effort;
  std::optional<bool> think;
  bool parse_special = false;  // control tokens in `prompt` are control tokens
  SamplingSettings settings;
};

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

// The conversation that begins with a system prompt, where there is one, and the user's message.
Json first_messages(const std::string& system, const std::string& user);

}  // namespace inferno
