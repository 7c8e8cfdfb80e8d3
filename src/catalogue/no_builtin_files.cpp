// libinferno, or the program (INFERNO_BUILTIN=OFF), without the built-in model.
#include "catalogue/builtin_model.h"

namespace inferno {

std::span<const EmbeddedFile> builtin_files() {
  return {};
}

}  // namespace inferno
