// MODEL or FILE.jinja on the command line to its chat templates, whichever file holds them.
#pragma once

#include <filesystem>

#include "base/error.h"
#include "chat/make_chat_format.h"
#include "chat/template_source.h"

namespace inferno {

// The templates in a model directory's files or in a .gguf; none of them when the model has none.
ModelTemplates find_templates(const std::filesystem::path& model);

// One template for a conversation with or without tools: a .jinja file, or that of a model directory or
// .gguf. A model without a template gets the default of its family, chosen by the control tokens that its
// files name, so that the tokenizer need not be one we know; one that has no chat format at all is
// Error{unsupported}.
TemplateSource open_template(const std::filesystem::path& model, bool with_tools);

// What to throw for a model that completes text and does not chat, or to say before completing text instead.
Error no_chat_format(const std::filesystem::path& model);

}  // namespace inferno
