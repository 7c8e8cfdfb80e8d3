// MODEL or FILE on the command line to a tokenizer, whichever kind of file holds it.
#pragma once

#include <filesystem>
#include <memory>

#include "text/tokenizer.h"

namespace inferno {

// A model directory, a tokenizer.json or a .gguf, of which only the header is read: the architecture need not
// be one we can run. A directory without tokenizer.json may hold .gguf files; their vocabularies are the
// same, so the first by name serves.
std::unique_ptr<Tokenizer> open_tokenizer(const std::filesystem::path& model);

// Whether the model's files hold a vocabulary at all.
bool has_tokenizer(const std::filesystem::path& model);

}  // namespace inferno
