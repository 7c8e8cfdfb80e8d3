// The fields of a request that constrain its reply, in the words of every API: the form of the text, and
// which functions may or must be called.
#pragma once

#include <string>
#include <vector>

#include "chat/json.h"
#include "server/fields/fields.h"
#include "service/text_model.h"

namespace inferno::server {

// What the text of the answer must satisfy: response_format, the fields of llama-server, vLLM and Ollama for
// the same, and `own`, an object with the fields for it that one API alone has, under the names of
// read_constraint(). ApiError 400 for more than one of them and for a malformed one; what cannot be enforced
// is found when it is compiled.
void take_text_constraint(Fields& fields, TextRequest& request, Json own = Json::object());

// What request.tools does not say about a tool, because the model is not shown it.
struct ToolSource {
  std::string schema;   // JSON pointer to the schema of its arguments in the request
  bool strict = false;  // the arguments must follow the schema
};
// Of a function that function_tool() has checked; `where` is the same, `schema` the schema's name there.
ToolSource tool_source(const Json& function, const std::string& where, std::string_view schema);

// Which of request.tools may be called, and whether one must be: `choice` is the request's tool_choice.
// nullptr and "auto" leave it to the model; with "none" it is shown no tools. Calls of strict tools follow
// their schema in any case. `sources` has an entry for each tool. ApiError 400 for a malformed choice and for
// a function that is not offered.
void constrain_calls(TextRequest& request, const Json* choice, bool parallel_calls,
                     const std::vector<ToolSource>& sources);

}  // namespace inferno::server
