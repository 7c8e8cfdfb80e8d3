// POST /v1/responses. Nothing is stored: a request has its whole conversation.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "chat/conversation.h"
#include "server/doors.h"
#include "server/fields/constraint_fields.h"
#include "server/fields/fields.h"
#include "server/openai/common.h"
#include "server/openai/responses_input.h"
#include "server/openai/responses_stream.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

constexpr std::size_t max_tools = 1024, max_includes = 64;

void refuse_state(Fields& fields) {
  constexpr std::string_view why = "this server stores nothing: send the whole conversation in input";
  fields.refuse("previous_response_id", why);
  fields.refuse("conversation", why);
  fields.refuse("background", "this server stores nothing: wait for the response, or stream it");
  fields.refuse("prompt", "this server has no stored prompts: send instructions and input");
}

// A choice among tools of which only functions were offered to the model.
Json without_hosted(Json choice) {
  const Json* tools = find_member(choice, "tools");
  if (tools == nullptr || !tools->is_array()) return choice;
  Json functions = Json::array();
  for (const Json& tool : *tools) {
    const Json* type = find_member(tool, "type");
    if (type == nullptr || *type == "function") functions.push_back(tool);
  }
  choice["tools"] = std::move(functions);
  return choice;
}

// A format that was read before, as the response has it.
Json shown_format(const Json& format) {
  const Json& type = format.at("type");
  if (type != "json_schema") return {{"type", type}};
  const Json* nested = find_member(format, "json_schema");
  Fields described(nested == nullptr ? format : *nested, "text.format.");
  Json shown = {{"type", type},
                {"name", described.take_string("name").value_or("response")},
                {"schema", *described.take("schema")},
                {"strict", described.take_bool("strict").value_or(false)}};
  if (const auto text = described.take_string("description")) shown["description"] = *text;
  return shown;
}

// The response's "text".
Json take_text(Fields& fields, Call& call, TextRequest& request) {
  Json shown = {{"format", {{"type", "text"}}}, {"verbosity", "medium"}};
  Json constraint = Json::object();
  if (const Json* text = fields.take_object("text")) {
    Fields inner(*text, "text.");
    const Json* format = inner.take_object("format");
    if (format != nullptr) constraint["text"]["format"] = *format;
    if (const auto verbosity = inner.take_string("verbosity")) {
      if (*verbosity != "low" && *verbosity != "medium" && *verbosity != "high") {
        refuse_value("text.verbosity", "low, medium or high", *verbosity);
      }
      shown["verbosity"] = *verbosity;
    }
    inner.finish(call);
  }
  take_text_constraint(fields, request, constraint);
  if (!constraint.empty()) shown["format"] = shown_format(constraint["text"]["format"]);
  return shown;
}

// The response's "reasoning". Thoughts are sent as they are: there are no summaries.
Json take_reasoning(Fields& fields, Call& call, CommonFields& common) {
  Json shown = {{"effort", nullptr}, {"summary", nullptr}};
  if (const Json* reasoning = fields.take_object("reasoning")) {
    Fields inner(*reasoning, "reasoning.");
    take_effort(inner, "effort", common.request);
    if (const auto enabled = inner.take_bool("enabled")) common.request.think = enabled;
    if (inner.take_bool("exclude").value_or(false)) common.include_reasoning = false;
    inner.refuse("max_tokens", "use reasoning.effort");
    const auto summary = inner.take_string("summary");
    if (summary == "auto" || summary == "concise" || summary == "detailed") shown["summary"] = *summary;
    inner.accept({"generate_summary", "context", "mode"});
    inner.finish(call);
  }
  if (!common.request.reasoning_effort.empty()) shown["effort"] = common.request.reasoning_effort;
  return shown;
}

Json take_metadata(Fields& fields) {
  const Json* metadata = fields.take_object("metadata");
  if (metadata == nullptr) return Json::object();
  for (const auto& [name, value] : metadata->items()) {
    if (!value.is_string()) refuse_value("metadata." + name, "a string", value);
  }
  return *metadata;
}

void take_truncation(Fields& fields, Call& call) {
  const auto truncation = fields.take_string("truncation");
  if (!truncation || *truncation == "disabled") return;
  if (*truncation != "auto") refuse_value("truncation", "disabled or auto", *truncation);
  call.ignore("truncation");
  call.warn("truncation: a conversation is never cut; one that is too long is refused");
}

// Whether log probabilities are asked for, and of how many alternatives.
std::optional<int> take_logprobs(Fields& fields) {
  const auto alternatives = fields.take_integer("top_logprobs", 0, 20);
  const Json* include = fields.take_array("include", max_includes);
  const bool is_included =
      include != nullptr &&
      std::ranges::find(*include, Json("message.output_text.logprobs")) != include->end();
  if (!is_included && alternatives.value_or(0) == 0) return std::nullopt;
  return static_cast<int>(alternatives.value_or(0));
}

// Numbers of requests are single precision: 0.7f is shown as 0.7.
Json shown(float number) {
  return parse_json_if_valid(fmt::format("{}", number)).value_or(Json(number));
}

Json text_or_null(const std::optional<std::string>& text) {
  return text ? Json(*text) : Json(nullptr);
}

// Fields of the request that are repeated in the response.
struct Echo {
  std::string model;
  std::optional<std::string> instructions, prompt_cache_key, safety_identifier, user;
  std::optional<std::int64_t> max_output_tokens, max_tool_calls;
  std::optional<int> logprobs;
  bool parallel_tool_calls = true;
  Json tool_choice = "auto";
  Json metadata, reasoning, text, tools;
};

Json response_of(const Echo& echo, const Sampling& sampling) {
  const auto number_or_null = [](const auto& number) { return number ? Json(*number) : Json(nullptr); };
  Json response = {{"id", random_id("resp_")},
                   {"object", "response"},
                   {"created_at", unix_time()},
                   {"status", "in_progress"},
                   {"background", false},
                   {"completed_at", nullptr},
                   {"error", nullptr},
                   {"incomplete_details", nullptr},
                   {"instructions", text_or_null(echo.instructions)},
                   {"max_output_tokens", number_or_null(echo.max_output_tokens)},
                   {"max_tool_calls", number_or_null(echo.max_tool_calls)},
                   {"model", echo.model},
                   {"output", Json::array()},
                   {"parallel_tool_calls", echo.parallel_tool_calls},
                   {"previous_response_id", nullptr},
                   {"prompt_cache_key", text_or_null(echo.prompt_cache_key)},
                   {"reasoning", echo.reasoning},
                   {"safety_identifier", text_or_null(echo.safety_identifier)},
                   {"service_tier", "default"},
                   {"store", false},
                   {"temperature", shown(sampling.temperature)},
                   {"text", echo.text},
                   {"tool_choice", echo.tool_choice},
                   {"tools", echo.tools},
                   {"top_logprobs", echo.logprobs.value_or(0)},
                   {"top_p", shown(sampling.top_p)},
                   {"truncation", "disabled"},
                   {"metadata", echo.metadata}};
  if (echo.user) response["user"] = *echo.user;
  return response;
}

// The fields that concern tools; those of additional_tools items come last.
void take_tools(Fields& fields, Call& call, ResponsesInput& input, CommonFields& common, Echo& echo) {
  OfferedTools tools;
  if (const Json* given = fields.take_array("tools", max_tools)) add_tools(tools, *given, "tools", call);
  for (Json& tool : input.tools.rendered) tools.rendered.push_back(std::move(tool));
  for (Json& tool : input.tools.shown) tools.shown.push_back(std::move(tool));
  for (ToolSource& source : input.tools.sources) tools.sources.push_back(std::move(source));
  const Json* choice = fields.take("tool_choice");
  if (choice != nullptr) echo.tool_choice = without_hosted(*choice);
  echo.parallel_tool_calls = fields.take_bool("parallel_tool_calls").value_or(true);
  echo.max_tool_calls = fields.take_integer("max_tool_calls", 0, std::numeric_limits<std::int64_t>::max());
  echo.tools = std::move(tools.shown);
  if (!tools.rendered.empty()) common.request.tools = std::move(tools.rendered);
  constrain_calls(common.request, choice == nullptr ? nullptr : &echo.tool_choice, echo.parallel_tool_calls,
                  tools.sources);
}

struct ResponsesRequest {
  CommonFields common;
  Echo echo;
  bool streams = false;
};

ResponsesRequest read_request(const TextModel& model, Call& call) {
  const Json body = call.take_body();
  Fields fields(body);
  ResponsesRequest whole;
  Echo& echo = whole.echo;
  echo.model = call.shared().served_name(fields.take("model"));
  refuse_state(fields);
  whole.streams = take_stream_options(fields, call).streams;
  echo.instructions = fields.take_string("instructions");
  echo.max_output_tokens =
      fields.take_integer("max_output_tokens", 1, std::numeric_limits<std::int64_t>::max());
  echo.logprobs = take_logprobs(fields);
  echo.metadata = take_metadata(fields);
  echo.prompt_cache_key = fields.take_string("prompt_cache_key");
  echo.safety_identifier = fields.take_string("safety_identifier");
  echo.user = fields.take_string("user");

  whole.common = take_common(fields, call);
  TextRequest& request = whole.common.request;
  if (echo.max_output_tokens) {
    request.settings.max_tokens =
        static_cast<int>(std::min<std::int64_t>(*echo.max_output_tokens, std::numeric_limits<int>::max()));
    const Json* least = fields.take("min_tokens");
    if (least != nullptr && request.settings.min_tokens > request.settings.max_tokens) {
      refuse_value("min_tokens",
                   fmt::format("at most max_output_tokens, which is {}", *echo.max_output_tokens), *least);
    }
  }
  request.settings.logprobs = echo.logprobs;
  echo.reasoning = take_reasoning(fields, call, whole.common);
  echo.text = take_text(fields, call, request);
  take_truncation(fields, call);
  const Json* input = fields.take("input");
  if (input == nullptr) throw invalid("input: missing", "input");
  ResponsesInput conversation = read_input(*input, echo.instructions.value_or(""), call);
  take_tools(fields, call, conversation, whole.common, echo);
  request.messages = std::move(conversation.messages);
  fields.take_integer("n", 1, 1);
  fields.accept({"client_metadata"});
  fields.finish(call);
  check_template_effects(model, request, call);
  return whole;
}

}  // namespace

void responses(SharedCall call) {
  const auto model = call->shared().model();
  const ResponsesRequest request = read_request(*model, *call);
  GenerationPlan plan;
  plan.prompts.push_back(prepare(*model, request.common.request, *call, "input"));
  plan.streams = request.streams;
  plan.writer =
      make_response_writer({.response = response_of(request.echo, plan.prompts[0].generation.sampling),
                            .streams = request.streams,
                            .include_reasoning = request.common.include_reasoning,
                            .single_call = !request.echo.parallel_tool_calls,
                            .logprobs = request.echo.logprobs.has_value(),
                            .tokenizer = &model->tokenizer()},
                           *call);
  start_generation(std::move(call), model, std::move(plan));
}

void count_response_tokens(SharedCall call) {
  const auto model = call->shared().model();
  const TextRequest request = read_request(*model, *call).common.request;
  call->respond(200, {{"object", "response.input_tokens"},
                      {"input_tokens", prompt_tokens(*model, request, "input").size()}});
}

}  // namespace inferno::server
