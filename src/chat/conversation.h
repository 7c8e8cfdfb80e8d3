// A conversation in the terms of OpenAI's chat API, and reading its fields with errors that name the field.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "chat/json.h"

namespace inferno {

// Messages and tools as OpenAI's chat API has them: {"role", "content", "tool_calls", …}.
struct Conversation {
  Json messages = Json::array();
  Json tools;                         // null or an array
  std::string reasoning_effort;       // empty: the model's default
  bool add_generation_prompt = true;  // end with the start of the assistant's turn
  // The reply continues the last message, which must be the assistant's, without tool calls: the prompt ends
  // inside it.
  bool continue_final_message = false;
  Json variables;               // null or an object: further template variables (enable_thinking, …)
  std::uint64_t call_seed = 0;  // replies to conversations with different seeds have different ids of calls
};

// Error{invalid_request} unless messages is an array of objects, tools null or an array, and variables null
// or an object, and the last message can be continued if it is to be.
void check_form(const Conversation& conversation);

bool has_tools(const Conversation& conversation);

// nullptr if `object` is not an object, has no such member, or the member is null.
const Json* find_member(const Json& object, const char* name);

// Error{invalid_request} unless the value is a string.
std::string text_member(const Json& value, std::string_view where);

// As Python's json.dumps writes it, with a space after commas and colons.
std::string spaced_json(const Json& value);

std::string role_of(const Json& message, const std::string& where);

// The content: a string, or the texts of an array of parts joined by `separator`; empty if the message has
// none. Error{invalid_request} for parts that are not text.
std::string text_of(const Json& message, const std::string& where, std::string_view separator);

// The member "reasoning", "reasoning_content" or "thinking"; nullopt if the message has none of them.
std::optional<std::string> reasoning_of(const Json& message, const std::string& where);

}  // namespace inferno
