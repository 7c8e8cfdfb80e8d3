// From the fields of a request, in the words of several APIs, to the constraint on its reply.
#pragma once

#include <string_view>

#include "chat/constraint/reply_constraint.h"
#include "chat/json_fwd.h"

namespace inferno {

// Reads the fields that concern the form of the reply and ignores all others:
//   response_format (OpenAI, llama-server), json_schema and grammar (llama-server), structured_outputs and
//   guided_json, guided_regex, guided_choice, guided_grammar (vLLM), text.format (Responses API),
//   output_config.format and output_format (Anthropic), format (Ollama), schema, json_object, regex, grammar,
//   choices (batch files); tools, tool_choice, parallel_tool_calls.
// Two constraints on the same text are an error. Throws ConstraintError.
ReplyConstraint read_constraint(const Json& request);

// Whether read_constraint() reads the field.
bool is_constraint_field(std::string_view name);

// The fields of `over` on top of those of `base`, both objects of constraint fields. A constraint on the text
// replaces another one, whatever their fields.
Json merged_constraint_fields(Json base, const Json& over);

// The response format as a conversation's template reads it: {"type": "json_schema", …}; null if the
// constraint has no schema.
Json response_format_of(const ReplyConstraint& constraint);

}  // namespace inferno
