// MODEL or FILE.jinja on the command line to a chat template, whichever file holds it.
#pragma once

#include <filesystem>

#include "chat/template_source.h"

namespace inferno {

// A .jinja file, a model directory or a .gguf. A model without a template gets the default of its family,
// chosen by the control tokens of its vocabulary; one that has no chat format at all is Error{unsupported}
// saying so.
TemplateSource open_template(const std::filesystem::path& model, bool with_tools);

}  // namespace inferno
