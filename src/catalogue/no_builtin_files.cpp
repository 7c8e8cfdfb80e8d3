// A build without the built-in model (INFERNO_BUILTIN=OFF), for programs that embed the library.
#include "catalogue/builtin_model.h"

namespace inferno {

std::span<const EmbeddedFile> builtin_files() {
  return {};
}

}  // namespace inferno
