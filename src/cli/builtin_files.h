// The files of the built-in model, as they were when the program was built.
#pragma once

#include <span>
#include <string_view>

namespace inferno {

struct EmbeddedFile {
  std::string_view name;
  std::string_view bytes;
};

std::span<const EmbeddedFile> builtin_files();

}  // namespace inferno
