#include "chat/conversation.h"

#include <fmt/format.h>

#include "base/error.h"

namespace inferno {
namespace {

[[noreturn]] void expected(std::string_view what, const Json& found, std::string_view where) {
  fail(ErrorKind::invalid_request, fmt::format("{}: expected {}, found {}", where, what, found.type_name()));
}

std::string part_text(const Json& part, const std::string& where) {
  const Json* type = find_member(part, "type");
  const Json* text = find_member(part, "text");
  if (text != nullptr) return text_member(*text, where + ".text");
  const std::string kind = type != nullptr && type->is_string() ? type->get<std::string>() : part.type_name();
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected a part of type \"text\", found \"{}\"", where, kind),
       {.why = "the model reads text only", .next = "send the text without images, sound or files"});
}

void check_final_message(const Json& messages) {
  const Json* last = messages.empty() ? nullptr : &messages.back();
  const Json* role = last == nullptr ? nullptr : find_member(*last, "role");
  if (role == nullptr || *role != "assistant") {
    fail(ErrorKind::invalid_request,
         "continue_final_message: expected a last message with the role \"assistant\"");
  }
  const Json* calls = find_member(*last, "tool_calls");
  if (calls != nullptr && !calls->empty()) {
    fail(ErrorKind::invalid_request, "continue_final_message: a message with tool calls cannot be continued");
  }
}

}  // namespace

void check_form(const Conversation& conversation) {
  if (!conversation.messages.is_array()) expected("an array", conversation.messages, "messages");
  for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
    const Json& message = conversation.messages[i];
    if (!message.is_object()) expected("an object", message, fmt::format("messages[{}]", i));
  }
  if (!conversation.tools.is_null() && !conversation.tools.is_array()) {
    expected("an array", conversation.tools, "tools");
  }
  if (!conversation.variables.is_null() && !conversation.variables.is_object()) {
    expected("an object", conversation.variables, "variables");
  }
  if (conversation.continue_final_message) check_final_message(conversation.messages);
}

bool has_tools(const Conversation& conversation) {
  return conversation.tools.is_array() && !conversation.tools.empty();
}

const Json* find_member(const Json& object, const char* name) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

std::string text_member(const Json& value, std::string_view where) {
  if (!value.is_string()) expected("a string", value, where);
  return value.get<std::string>();
}

std::string spaced_json(const Json& value) {
  if (!value.is_structured()) return value.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string text(1, value.is_array() ? '[' : '{');
  for (const auto& [key, item] : value.items()) {
    if (text.size() > 1) text += ", ";
    if (value.is_object()) text += Json(key).dump(-1, ' ', false, Json::error_handler_t::replace) + ": ";
    text += spaced_json(item);
  }
  return text + (value.is_array() ? ']' : '}');
}

std::string role_of(const Json& message, const std::string& where) {
  const Json* role = find_member(message, "role");
  if (role == nullptr) fail(ErrorKind::invalid_request, where + ": expected an object with a \"role\"");
  return text_member(*role, where + ".role");
}

std::string text_of(const Json& message, const std::string& where, std::string_view separator) {
  const Json* content = find_member(message, "content");
  if (content == nullptr) return {};
  if (content->is_string()) return content->get<std::string>();
  if (!content->is_array()) expected("a string or an array of parts", *content, where + ".content");
  std::string text;
  for (std::size_t i = 0; i < content->size(); ++i) {
    if (i > 0) text += separator;
    text += part_text((*content)[i], fmt::format("{}.content[{}]", where, i));
  }
  return text;
}

std::optional<std::string> reasoning_of(const Json& message, const std::string& where) {
  for (const char* name : {"reasoning", "reasoning_content", "thinking"}) {
    const Json* found = find_member(message, name);
    if (found != nullptr) return text_member(*found, where + "." + name);
  }
  return std::nullopt;
}

}  // namespace inferno
