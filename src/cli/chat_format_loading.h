// MODEL on the command line to its chat format: native Harmony, the model's own template or the default of
// its family.
#pragma once

#include <filesystem>
#include <memory>

#include "chat/chat_format.h"
#include "chat/make_chat_format.h"
#include "cli/template_loading.h"

namespace inferno {

// `model` is a directory or a .gguf and `tokenizer` its tokenizer, which must outlive the result. nullptr
// when the model has no chat format: it completes text, and the caller goes on that way or throws
// no_chat_format(model) of template_loading.h.
// Error{corrupt} or Error{unsupported} when it has a template that cannot be read.
std::unique_ptr<ChatFormat> load_chat_format(const std::filesystem::path& model, const Tokenizer& tokenizer,
                                             const ChatOptions& options = {});

}  // namespace inferno
