// Functions as gpt-oss was trained to read them: a TypeScript namespace made of their JSON schemas.
#pragma once

#include <string>
#include <string_view>

#include "chat/json.h"

namespace inferno::harmony {

// "## functions\n\nnamespace functions {\n\n…\n\n} // namespace functions" for tools as OpenAI's APIs have
// them:
// {"type": "function", "function": {…}}, or flat as in the Responses API. Error{invalid_request} naming the
// tool for what is no function or has no name.
std::string render_functions(const Json& tools);

// {"name", "description", "parameters"} of tools[index], checked.
const Json& function_of(const Json& tools, std::size_t index);

// A JSON schema as a TypeScript type.
std::string typescript_type(const Json& schema, const std::string& indent = {});

// A name goes into a message's header, where blanks and angle brackets would be read as protocol.
void check_name(std::string_view name, std::string_view where);

}  // namespace inferno::harmony
