#include "server/anthropic/messages_input.h"

#include <fmt/format.h>

#include <limits>
#include <set>

#include "base/error.h"
#include "chat/conversation.h"
#include "server/fields/constraint_fields.h"
#include "server/fields/fields.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t max_messages = 100'000;
constexpr std::size_t max_tools = 1024;

std::string required_text(Fields& fields, std::string_view name) {
  const auto text = fields.take_string(name);
  if (!text) {
    throw invalid(fmt::format("{}: field required", fields.full_name(name)), fields.full_name(name));
  }
  return *text;
}

// Tools that run at Anthropic, or whose description Claude has learned, mean nothing to another model. Agents
// offer them with every request.
bool is_of_anthropic(const Json& tool, const std::string& where, Call& call) {
  const Json* type = find_member(tool, "type");
  if (type == nullptr || *type == "custom") return false;
  if (!type->is_string()) refuse_value(where + ".type", "a string", *type);
  call.ignore("tools." + type->get<std::string>());
  return true;
}

Json tool_of(const Json& tool, const std::string& where, Call& call) {
  Fields fields(tool, where + ".");
  Json function = Json::object();
  for (const char* name : {"name", "description", "strict"}) {
    if (const Json* value = fields.take(name)) function[name] = *value;
  }
  const Json* schema = fields.take_object("input_schema");
  if (schema == nullptr) throw invalid(where + ".input_schema: field required", where + ".input_schema");
  function["parameters"] = *schema;
  fields.accept({"type", "cache_control"});
  for (const std::string& rest : fields.rest()) call.ignore("tools." + rest);
  return function_tool(function, where, call);
}

Json take_tools(Fields& fields, Call& call, std::vector<ToolSource>& sources) {
  const Json* given = fields.take_array("tools", max_tools);
  Json tools;
  std::set<std::string> names;
  for (std::size_t i = 0; given != nullptr && i < given->size(); ++i) {
    const Json& tool = (*given)[i];
    const std::string where = fmt::format("tools[{}]", i);
    if (!tool.is_object()) refuse_value(where, "an object", tool);
    if (is_of_anthropic(tool, where, call)) continue;
    tools.push_back(tool_of(tool, where, call));
    sources.push_back(tool_source(tool, where, "input_schema"));
    const auto& name = tools.back().at("function").at("name").get_ref<const std::string&>();
    if (!names.insert(name).second) {
      throw invalid(fmt::format("{}.name: another tool is named \"{}\" too", where, name), where + ".name");
    }
  }
  return tools;
}

void take_conversation(Fields& fields, Call& call, MessagesRequest& request) {
  const Json* messages = fields.take_array("messages", max_messages);
  if (messages == nullptr) throw invalid("messages: field required", "messages");
  MessagesConversation conversation = read_conversation(fields.take("system"), *messages);
  for (std::string& name : conversation.ignored) call.ignore(std::move(name));
  request.text.messages = std::move(conversation.messages);
  if (conversation.ends_with_assistant) {
    request.text.continue_final_message = true;
    request.text.add_generation_prompt = false;
  }
}

void take_tool_choice(const Json& given, Call& call, MessagesRequest& request) {
  Fields choice(given, "tool_choice.");
  const std::string type = required_text(choice, "type");
  if (type != "auto" && type != "any" && type != "tool" && type != "none") {
    refuse_value("tool_choice.type", "\"auto\", \"any\", \"tool\" or \"none\"", Json(type));
  }
  if (type == "tool") required_text(choice, "name");
  request.single_call = choice.take_bool("disable_parallel_tool_use").value_or(false);
  choice.finish(call);
}

// Whether the chat format has a switch for thinking. A short conversation tells as much as the client's.
bool has_effect(const TextModel& model, const TextRequest& request) {
  TextRequest probe;
  probe.messages = first_messages({}, "?");
  probe.think = request.think;
  probe.reasoning_effort = request.reasoning_effort;
  probe.template_variables = request.template_variables;
  try {
    return model.without_effect(probe).empty();
  } catch (const Error&) {
    return true;  // prepare() reports what the template refuses
  }
}

// The switch of the model's template; for a model that always thinks, the least effort.
void switch_off_thinking(const TextModel& model, TextRequest& request) {
  const std::string effort = request.reasoning_effort;
  request.think = false;
  request.reasoning_effort.clear();
  if (has_effect(model, request)) return;
  request.think.reset();
  request.reasoning_effort = "none";
  if (!has_effect(model, request)) request.reasoning_effort = effort;
}

void take_thinking(Fields& fields, const TextModel& model, Call& call, MessagesRequest& request) {
  const Json* given = fields.take_object("thinking");
  if (given == nullptr) return;
  Fields thinking(*given, "thinking.");
  const std::string type = required_text(thinking, "type");
  const auto budget = thinking.take_integer("budget_tokens", 1, max_int64);
  const std::string display = thinking.take_string("display").value_or("summarized");
  if (display == "omitted") {
    request.thinking = ThinkingDisplay::omitted;
  } else if (display != "summarized") {
    refuse_value("thinking.display", "\"summarized\" or \"omitted\"", Json(display));
  }
  if (type == "disabled") {
    request.thinking = ThinkingDisplay::none;
    switch_off_thinking(model, request.text);
  } else if (type == "enabled") {
    request.text.think = true;
    if (budget) call.ignore("thinking.budget_tokens");
  } else if (type != "adaptive" && type != "between_tools") {
    refuse_value("thinking.type", "\"enabled\", \"disabled\" or \"adaptive\"", Json(type));
  }
  thinking.finish(call);
}

// The effort, and the form of the answer under its newer and its older name.
void take_output(Fields& fields, Call& call, TextRequest& request) {
  Json constraint = Json::object();
  if (const Json* given = fields.take_object("output_config")) {
    Fields config(*given, "output_config.");
    take_effort(config, "effort", request);
    if (const Json* format = config.take_object("format")) constraint["output_config"]["format"] = *format;
    config.finish(call);
  }
  if (const Json* format = fields.take_object("output_format")) constraint["output_format"] = *format;
  take_text_constraint(fields, request, std::move(constraint));
}

void take_stop_sequences(Fields& fields, SamplingSettings& settings) {
  const Json* given = fields.take_array("stop_sequences", 64);
  if (given == nullptr || given->empty()) return;
  std::vector<std::string> stops;
  for (std::size_t i = 0; i < given->size(); ++i) {
    const Json& one = (*given)[i];
    if (!one.is_string() || one.get_ref<const std::string&>().empty()) {
      refuse_value(fmt::format("stop_sequences[{}]", i), "a string that is not empty", one);
    }
    stops.push_back(one.get<std::string>());
  }
  settings.stop = std::move(stops);
}

// Conversations are not stored. Anthropic's tool runner asks for it first and then sends all messages.
void refuse_thread(Fields& fields) {
  if (fields.take("thread") == nullptr) return;
  ApiError error =
      invalid("thread is not supported: conversations are not stored here; send all messages", "thread");
  error.code = "thread_unsupported_request";
  throw error;
}

// What the API has and a model of one's own does not need.
void take_the_rest(Fields& fields) {
  fields.accept({"model", "betas", "cache_control", "user_profile_id", "workspace_id", "anthropic_version"});
  fields.refuse("mcp_servers", "this server connects to no other one; offer the tools in \"tools\"");
}

}  // namespace

MessagesRequest read_messages(const Json& body, MessagesRoute route, const TextModel& model, Call& call) {
  Fields fields(body);
  refuse_thread(fields);
  MessagesRequest request;
  request.model = call.shared().served_name(fields.take("model"));
  if (route == MessagesRoute::answer && !fields.take_integer("max_tokens", 1, max_int64)) {
    throw invalid("max_tokens: field required", "max_tokens");
  }
  fields.take_number("temperature", 0, 1);
  CommonFields common = take_common(fields, call);
  request.text = std::move(common.request);
  if (!common.include_reasoning) request.thinking = ThinkingDisplay::none;
  request.streams = fields.take_bool("stream").value_or(false);
  take_conversation(fields, call, request);
  std::vector<ToolSource> sources;
  request.text.tools = take_tools(fields, call, sources);
  const Json* choice = fields.take_object("tool_choice");
  if (choice != nullptr) take_tool_choice(*choice, call, request);
  constrain_calls(request.text, choice, !request.single_call, sources);
  take_output(fields, call, request.text);
  take_thinking(fields, model, call, request);
  take_stop_sequences(fields, request.text.settings);
  take_the_rest(fields);
  fields.finish(call);
  check_template_effects(model, request.text, call);
  return request;
}

}  // namespace inferno::server
