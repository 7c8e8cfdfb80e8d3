// OpenAI's messages as chat templates expect them.
#include <fmt/format.h>

#include "chat/message_fields.h"
#include "chat/template_format.h"

namespace inferno {
namespace {

// Templates print arguments with tojson, which would quote a text once more.
void parse_arguments(Json& message) {
  if (!message.contains("tool_calls") || !message.at("tool_calls").is_array()) return;
  for (Json& call : message.at("tool_calls")) {
    if (!call.is_object()) continue;
    const bool nested = call.contains("function") && call.at("function").is_object();
    Json& function = nested ? call.at("function") : call;
    if (!function.contains("arguments") || !function.at("arguments").is_string()) continue;
    auto parsed = parse_json_if_valid(function.at("arguments").get_ref<const std::string&>());
    if (parsed && parsed->is_object()) function["arguments"] = *std::move(parsed);
  }
}

void adapt(Json& message, const std::string& where, std::string_view source) {
  const std::string role = role_of(message, where);
  if (role == "developer" && source.find("developer") == std::string_view::npos) message["role"] = "system";
  if (message.contains("content") && message.at("content").is_array()) {
    message["content"] = text_of(message, where, "\n");
  }
  if (const auto reasoning = reasoning_of(message, where)) {
    for (const char* name : {"reasoning_content", "thinking"}) {
      if (!message.contains(name) && source.find(name) != std::string_view::npos) message[name] = *reasoning;
    }
  }
  parse_arguments(message);
}

}  // namespace

Json template_variables(const Conversation& conversation, std::string_view source) {
  check_form(conversation);
  Json variables = Json::object();
  variables["messages"] = conversation.messages;
  for (std::size_t i = 0; i < conversation.messages.size(); ++i) {
    adapt(variables["messages"][i], fmt::format("messages[{}]", i), source);
  }
  variables["tools"] = conversation.tools;
  variables["documents"] = nullptr;
  variables["add_generation_prompt"] = conversation.add_generation_prompt;
  if (!conversation.reasoning_effort.empty()) variables["reasoning_effort"] = conversation.reasoning_effort;
  if (!conversation.variables.is_object()) return variables;
  for (const auto& [name, value] : conversation.variables.items()) {
    if (name != "messages" && name != "tools" && name != "add_generation_prompt") variables[name] = value;
  }
  return variables;
}

}  // namespace inferno
