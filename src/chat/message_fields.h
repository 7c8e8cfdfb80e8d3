// Reading OpenAI's messages, with errors that name the field.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "chat/chat_format.h"

namespace inferno {

// Error{invalid_request} unless messages is an array of objects, tools null or an array, and variables null
// or an object.
void check_form(const Conversation& conversation);

bool has_tools(const Conversation& conversation);

// nullptr when `object` is none, has no such member, or the member is null.
const Json* find_member(const Json& object, const char* name);

// Error{invalid_request} unless it is a text.
std::string text_member(const Json& value, std::string_view where);

// As Python's json.dumps writes it, with a blank behind commas and colons.
std::string spaced_json(const Json& value);

std::string role_of(const Json& message, const std::string& where);

// The content: a text, the texts of an array of parts joined by `separator`, or nothing when there is none.
// Error{invalid_request} for parts that are no text.
std::string text_of(const Json& message, const std::string& where, std::string_view separator);

// Under whichever of its names (reasoning, reasoning_content, thinking) the message has it.
std::optional<std::string> reasoning_of(const Json& message, const std::string& where);

}  // namespace inferno
