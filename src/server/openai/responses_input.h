// What a request to the Responses API asks: its input items as messages of the chat API, and its tools.
#pragma once

#include <string>
#include <vector>

#include "chat/json.h"
#include "server/call.h"
#include "server/fields/constraint_fields.h"

namespace inferno::server {

// The tools of a request. Only functions can be called: any other kind is left out and named as ignored.
struct OfferedTools {
  Json rendered = Json::array();  // in the form of TextRequest::tools
  Json shown = Json::array();     // in the form of the response's "tools"
  std::vector<ToolSource> sources;
};

// Adds the functions of an array; `where` names it ("tools"). ApiError 400 for a malformed tool.
void add_tools(OfferedTools& tools, const Json& array, const std::string& where, Call& call);

struct ResponsesInput {
  Json messages = Json::array();
  OfferedTools tools;  // those of items of type additional_tools
};

// `input` is a string or an array of items; `instructions` may be empty. Items of the assistant that follow
// each other (reasoning, text, function calls) are one turn: a model's template knows them as one message.
// ApiError 400 naming the item for anything that a stateless server with a model of text cannot take.
ResponsesInput read_input(const Json& input, const std::string& instructions, Call& call);

}  // namespace inferno::server
