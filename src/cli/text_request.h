// What is to be written, in words: a text to complete or a conversation to answer, and how to sample.
#pragma once

#include <optional>
#include <string>

#include "chat/json.h"
#include "cli/sampling_settings.h"

namespace inferno {

struct TextRequest {
  std::optional<std::string> prompt;  // to complete; else `messages`
  Json messages;                      // OpenAI's
  Json tools;                         // null or an array
  std::string reasoning_effort;       // empty: the model's default
  std::optional<bool> think;          // nullopt: the model's default
  bool parse_special = false;         // control tokens in `prompt` are control tokens
  SamplingSettings settings;          // over the model's own
};

// How much a model may think, in the words of all families: none, minimal, low, medium, high, xhigh, max.
// What a family does not have counts as its nearest. The problem with `text`; empty when there is none.
std::string effort_problem(const std::string& text);

// The conversation that begins with a system prompt, where there is one, and the user's message.
Json first_messages(const std::string& system, const std::string& user);

}  // namespace inferno
