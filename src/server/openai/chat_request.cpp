#include "server/openai/chat_request.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "chat/conversation.h"
#include "server/fields/constraint_fields.h"
#include "server/fields/fields.h"

namespace inferno::server {
namespace {

constexpr std::size_t max_messages = 2048;
constexpr std::size_t max_tools = 128;
constexpr int max_top_logprobs = 20;

void check_part(Json& part, const std::string& where) {
  const Json* type = find_member(part, "type");
  if (type == nullptr || !type->is_string()) refuse_value(where, "a part with a \"type\"", part);
  const auto kind = type->get<std::string>();
  const char* name = kind == "refusal" ? "refusal" : "text";
  if (kind != "text" && kind != "refusal") {
    throw invalid(fmt::format("{}: a part of type {} is not supported: the model reads text only", where,
                              dumped(kind.substr(0, 64))),
                  where);
  }
  const Json* text = find_member(part, name);
  if (text == nullptr || !text->is_string()) {
    refuse_value(fmt::format("{}.{}", where, name), "a string", text == nullptr ? Json(nullptr) : *text);
  }
  if (kind == "refusal") part = {{"type", "text"}, {"text", *text}};
}

void check_content(Json& message, const std::string& where, bool is_needed) {
  const auto content = message.find("content");
  const bool is_absent = content == message.end() || content->is_null();
  if (is_absent && !is_needed) return;
  if (!is_absent && content->is_string()) return;
  if (is_absent || !content->is_array()) {
    refuse_value(where + ".content", "a string or an array of parts", is_absent ? Json(nullptr) : *content);
  }
  for (std::size_t i = 0; i < content->size(); ++i) {
    check_part((*content)[i], fmt::format("{}.content[{}]", where, i));
  }
}

void check_calls(Json& message, const std::string& where) {
  const Json* calls = find_member(message, "tool_calls");
  if (calls == nullptr) return;
  const std::string field = where + ".tool_calls";
  if (!calls->is_array()) refuse_value(field, "an array", *calls);
  for (std::size_t i = 0; i < calls->size(); ++i) {
    const std::string place = fmt::format("{}[{}]", field, i);
    const Json* function = find_member((*calls)[i], "function");
    const Json* name = function == nullptr ? nullptr : find_member(*function, "name");
    if (name == nullptr || !name->is_string()) {
      refuse_value(place + ".function", "an object with the name of a function", (*calls)[i]);
    }
    const Json* arguments = find_member(*function, "arguments");
    if (arguments != nullptr && !arguments->is_string() && !arguments->is_object()) {
      refuse_value(place + ".function.arguments", "a string of JSON", *arguments);
    }
  }
  if (calls->empty()) message.erase("tool_calls");
}

void check_message(Json& message, const std::string& where) {
  if (!message.is_object()) refuse_value(where, "an object with a \"role\"", message);
  const Json* role = find_member(message, "role");
  if (role == nullptr || !role->is_string()) {
    refuse_value(where + ".role", "a string", role == nullptr ? Json(nullptr) : *role);
  }
  static const std::set<std::string, std::less<>> roles = {"system", "developer", "user", "assistant",
                                                           "tool"};
  const auto name = role->get<std::string>();
  if (name == "function" || find_member(message, "function_call") != nullptr) {
    throw invalid(
        where + ": functions of the old kind are not supported: use tool_calls and the role \"tool\"", where);
  }
  if (!roles.contains(name)) {
    refuse_value(where + ".role", "system, developer, user, assistant or tool", *role);
  }
  if (find_member(message, "audio") != nullptr) {
    throw invalid(where + ".audio is not supported: the model reads text only", where + ".audio");
  }
  for (const char* text : {"name", "tool_call_id", "reasoning", "reasoning_content"}) {
    const Json* value = find_member(message, text);
    if (value != nullptr && !value->is_string())
      refuse_value(fmt::format("{}.{}", where, text), "a string", *value);
  }
  check_content(message, where, /*is_needed=*/name != "assistant" && name != "tool");
  if (name == "assistant") check_calls(message, where);
}

// Fields of messages that neither the API nor the model's template has, each named once.
void name_unread_fields(const Json& messages, Call& call) {
  static const std::set<std::string, std::less<>> known = {
      "role",      "content",           "name",     "tool_call_id", "tool_calls",   "refusal",
      "reasoning", "reasoning_content", "thinking", "annotations",  "cache_control"};
  const auto model = call.shared().model();
  std::set<std::string, std::less<>> named;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    for (const std::string& field : Fields(messages[i]).rest()) {
      if (known.contains(field) || has_word(model->chat_template(), field)) continue;
      if (named.insert(field).second) call.ignore(fmt::format("messages[{}].{}", i, field));
    }
  }
}

Json take_tools(Fields& fields, Call& call, std::vector<ToolSource>& sources) {
  const Json* tools = fields.take_array("tools", max_tools);
  if (tools == nullptr) return nullptr;
  Json checked = Json::array();
  std::set<std::string> names;
  for (std::size_t i = 0; i < tools->size(); ++i) {
    const Json& tool = (*tools)[i];
    const std::string where = fmt::format("tools[{}]", i);
    const Json* type = find_member(tool, "type");
    if (type == nullptr || *type != "function") {
      refuse_value(where + ".type", "\"function\"", type == nullptr ? Json(nullptr) : *type);
    }
    Fields fields_of_tool(tool, where + ".");
    fields_of_tool.accept({"type", "function", "cache_control"});
    for (const std::string& rest : fields_of_tool.rest()) call.ignore("tools." + rest);
    const Json* given = find_member(tool, "function");
    const Json function = given == nullptr ? Json(nullptr) : *given;
    checked.push_back(function_tool(function, where + ".function", call));
    sources.push_back(tool_source(function, where + ".function", "parameters"));
    const auto name = checked.back()["function"]["name"].get<std::string>();
    if (!names.insert(name).second) {
      throw invalid(fmt::format("{}.function.name: \"{}\" is the name of an earlier tool", where, name),
                    where + ".function.name");
    }
  }
  return checked.empty() ? Json(nullptr) : checked;
}

void refuse_other_modes(Fields& fields) {
  if (const Json* modalities = fields.take("modalities")) {
    if (*modalities != Json::array({"text"})) refuse_value("modalities", "[\"text\"]", *modalities);
  }
  fields.refuse("audio", "the model writes text only");
  fields.refuse("prediction", "predicted outputs are not available");
  if (fields.take("web_search_options") != nullptr) {
    throw invalid("web_search_options is not supported: the server reaches no other", "web_search_options");
  }
  fields.refuse("functions", "use tools");
  // Without functions they ask for what happens anyway.
  const Json* choice = fields.take("function_call");
  if (choice != nullptr && *choice != "none" && *choice != "auto") {
    throw invalid(
        fmt::format("function_call {} is not supported: use tool_choice", dumped(*choice).substr(0, 64)),
        "function_call");
  }
}

void take_reasoning(Fields& fields, Call& call, ChatRequest& chat) {
  const Json* reasoning = fields.take_object("reasoning");
  if (reasoning == nullptr) return;
  Fields inner(*reasoning, "reasoning.");
  take_effort(inner, "effort", chat.request);
  if (const auto enabled = inner.take_bool("enabled")) chat.request.think = enabled;
  if (inner.take_bool("exclude").value_or(false)) chat.output.include_reasoning = false;
  inner.refuse("max_tokens", "use reasoning.effort");
  inner.finish(call);
}

// The switches of Ollama, Qwen and DeepSeek, whose clients send them to any server.
void take_thinking(Fields& fields, Call& call, ChatRequest& chat) {
  for (const char* name : {"think", "enable_thinking"}) {
    if (const auto thinks = fields.take_bool(name)) chat.request.think = thinks;
  }
  const Json* thinking = fields.take_object("thinking");
  if (thinking == nullptr) return;
  Fields inner(*thinking, "thinking.");
  const auto type = inner.take_string("type").value_or("");
  inner.finish(call);                                // no budget, and one way to show thoughts
  if (type == "adaptive" || type == "auto") return;  // the model decides, as it does without the field
  if (type != "enabled" && type != "disabled") {
    refuse_value("thinking.type", "\"enabled\", \"disabled\", \"adaptive\" or \"auto\"", type);
  }
  chat.request.think = type == "enabled";
}

void take_logprobs(Fields& fields, ChatRequest& chat) {
  chat.output.logprobs = fields.take_bool("logprobs").value_or(false);
  const auto top = fields.take_integer("top_logprobs", 0, max_top_logprobs);
  if (top.value_or(0) > 0 && !chat.output.logprobs) {
    throw invalid("top_logprobs: expected only together with \"logprobs\": true", "top_logprobs");
  }
  if (chat.output.logprobs) chat.request.settings.logprobs = static_cast<int>(top.value_or(0));
}

}  // namespace

void check_messages(Json& messages) {
  if (!messages.is_array() || messages.empty() || messages.size() > max_messages) {
    refuse_value("messages", fmt::format("an array of 1 to {} messages", max_messages), messages);
  }
  for (std::size_t i = 0; i < messages.size(); ++i)
    check_message(messages[i], fmt::format("messages[{}]", i));
}

ChatRequest read_chat_request(Call& call) {
  return read_chat_request(call, call.take_body());
}

ChatRequest read_chat_request(Call& call, Json body) {
  Fields fields(body);
  ChatRequest chat;
  chat.model = call.shared().served_name(fields.take("model"));
  if (fields.take("messages") == nullptr)
    throw invalid("messages: expected an array of messages", "messages");
  CommonFields common = take_common(fields, call);
  chat.request = std::move(common.request);
  chat.output.include_reasoning = common.include_reasoning;
  chat.output.reasoning_format = call.shared().settings().reasoning_format;
  chat.output.single_call = !fields.take_bool("parallel_tool_calls").value_or(true);
  chat.stream = take_stream_options(fields, call);
  chat.request.choices = take_choices(fields);
  std::vector<ToolSource> sources;
  chat.request.tools = take_tools(fields, call, sources);
  constrain_calls(chat.request, fields.take("tool_choice"), !chat.output.single_call, sources);
  take_reasoning(fields, call, chat);
  take_thinking(fields, call, chat);
  take_logprobs(fields, chat);
  take_text_constraint(fields, chat.request);
  refuse_other_modes(fields);
  fields.accept({"verbosity"});
  fields.finish(call);
  chat.request.messages = std::move(body["messages"]);
  check_messages(chat.request.messages);
  name_unread_fields(chat.request.messages, call);
  return chat;
}

}  // namespace inferno::server
