// Models with a Jinja template: the prompt is what the template renders, and text of users cannot become
// control tokens.
#pragma once

#include <memory>
#include <string_view>

#include "chat/chat_format.h"
#include "chat/json_fwd.h"
#include "chat/template_source.h"

namespace inferno {

// The template's variables as apply_chat_template passes them, with the conversation in the form that
// templates expect: the parts of a message joined, arguments of tool calls as objects, reasoning under each
// of its names, "developer" as "system" if the template does not mention it.
Json template_variables(const Conversation& conversation, std::string_view template_source);

// The tokenizer must outlive the result. `with_tools`, if given, serves conversations with tools.
std::unique_ptr<ChatFormat> make_template_format(const Tokenizer& tokenizer, const TemplateSource& usual,
                                                 const TemplateSource* with_tools,
                                                 const ChatOptions& options);

}  // namespace inferno
