// Models that bring a Jinja template: the prompt is what it renders, with the user's words kept from becoming
// control tokens.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "chat/chat_format.h"
#include "chat/jinja/template.h"
#include "chat/make_chat_format.h"
#include "chat/template_source.h"

namespace inferno {

// The template's variables, as apply_chat_template passes them, with the conversation in the terms that
// templates expect: parts of a message joined into one text, arguments of tool calls as objects, reasoning
// under each of its names, "developer" as "system" where the template does not know it.
Json template_variables(const Conversation& conversation, std::string_view template_source);

// The tokenizer must outlive the result. `with_tools`, if given, serves conversations with tools.
std::unique_ptr<ChatFormat> make_template_format(const Tokenizer& tokenizer, const TemplateSource& usual,
                                                 const TemplateSource* with_tools,
                                                 const ChatOptions& options);

}  // namespace inferno
