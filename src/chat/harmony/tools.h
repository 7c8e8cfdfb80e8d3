// Functions as gpt-oss was trained to read them: a TypeScript namespace generated from their JSON schemas.
#pragma once

#include <string>
#include <string_view>

#include "chat/json_fwd.h"

namespace inferno::harmony {

// "## functions\n\nnamespace functions {\n\n…\n\n} // namespace functions" for the tools of OpenAI's APIs:
// {"type": "function", "function": {…}}, or flat as in the Responses API. Error{invalid_request} naming the
// tool if it is not a function or has no name.
std::string render_functions(const Json& tools);

// {"name", "description", "parameters"} of tools[index], checked.
const Json& function_of(const Json& tools, std::size_t index);

// A JSON schema as a TypeScript type.
std::string typescript_type(const Json& schema, const std::string& indent = {});

// Error{invalid_request} for a name with spaces or angle brackets, which a message header could not contain.
void check_name(std::string_view name, std::string_view where);

}  // namespace inferno::harmony
