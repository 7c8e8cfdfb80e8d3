#include "server/fields/constraint_fields.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "chat/constraint/read_constraint.h"
#include "chat/conversation.h"

namespace inferno::server {
namespace {

// Every field that constrains the text, or its blanks, under the same name in all APIs.
constexpr const char* text_fields[] = {"response_format",
                                       "json_schema",
                                       "json_object",
                                       "schema",
                                       "format",
                                       "grammar",
                                       "regex",
                                       "choices",
                                       "guided_json",
                                       "guided_regex",
                                       "guided_choice",
                                       "guided_grammar",
                                       "guided_whitespace_pattern",
                                       "structured_outputs",
                                       "whitespace"};

ReplyConstraint constraint_of(const Json& given) {
  try {
    return read_constraint(given);
  } catch (const ConstraintError& error) {
    throw invalid(error.what(), error.param());
  }
}

// "auto", or {"type": "auto"} as Anthropic writes it.
bool is_automatic(const Json& choice) {
  const Json* type = find_member(choice, "type");
  return (type == nullptr ? choice : *type) == "auto";
}

// "tools[0].function" as "/tools/0/function".
std::string pointer_of(std::string_view where) {
  std::string pointer = "/";
  for (const char letter : where) {
    if (letter == '.' || letter == '[') {
      pointer += '/';
    } else if (letter != ']') {
      pointer += letter;
    }
  }
  return pointer;
}

// The place of a function of request.tools ("/tools/2/function/parameters") in the client's request.
void take_place(OfferedFunction& function, const std::vector<ToolSource>& sources) {
  constexpr std::string_view list = "/tools/";
  std::size_t index = 0;
  std::from_chars(function.place.data() + list.size(), function.place.data() + function.place.size(), index);
  function.place = sources.at(index).schema;
}

}  // namespace

void take_text_constraint(Fields& fields, TextRequest& request, Json own) {
  Json given = std::move(own);
  for (const char* name : text_fields) {
    const Json* value = fields.take(name);
    // Clients send an empty text for "none"; {} is a schema, and [] a choice between nothing.
    if (value != nullptr && *value != "") given[name] = *value;
  }
  request.constraint.text = constraint_of(given).text;
}

ToolSource tool_source(const Json& function, const std::string& where, std::string_view schema) {
  const Json* strict = find_member(function, "strict");
  return {.schema = pointer_of(where) + '/' + std::string(schema),
          .strict = strict != nullptr && *strict == true};
}

void constrain_calls(TextRequest& request, const Json* choice, bool parallel_calls,
                     const std::vector<ToolSource>& sources) {
  const bool automatic = choice == nullptr || is_automatic(*choice);
  if (automatic && std::ranges::none_of(sources, &ToolSource::strict)) return;
  Json given = {{"parallel_tool_calls", parallel_calls}};
  if (choice != nullptr) given["tool_choice"] = *choice;
  if (!request.tools.is_null()) given["tools"] = request.tools;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].strict) given["tools"][i]["function"]["strict"] = true;
  }
  ReplyConstraint found = constraint_of(given);
  for (OfferedFunction& function : found.functions) take_place(function, sources);
  request.constraint.functions = found.functions;
  request.constraint.calls = found.calls;
  request.constraint.parallel_calls = found.parallel_calls;
  // Without definitions the model has nothing to call.
  if (found.functions.empty()) request.tools = nullptr;
  // Only some of the tools may be called, if any.
  if (!automatic && found.calls == CallMode::automatic && !found.functions.empty())
    request.harmony_mask = true;
}

}  // namespace inferno::server
