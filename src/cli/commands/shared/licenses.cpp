#include "cli/commands/shared/licenses.h"

#include <string_view>

namespace inferno {
namespace {

constexpr std::string_view own = "LICENSE";

}  // namespace

std::string licenses() {
  std::string text;
  for (const bool is_own : {true, false}) {
    for (const EmbeddedFile& file : license_files()) {
      if ((file.name == own) != is_own) continue;
      if (!text.empty()) text += "\n\n" + std::string(80, '-') + "\n\n";
      text += file.bytes;
    }
  }
  return text;
}

}  // namespace inferno
