#include "support/paths.h"

#include <algorithm>
#include <cstdlib>

#include "support/source_dir.h"

namespace inferno::testing {
namespace fs = std::filesystem;

fs::path source_folder() {
  const char* given = std::getenv("INFERNO_SOURCE");
  return given != nullptr ? fs::path(given) : fs::path(INFERNO_SOURCE_DIR);
}

fs::path data_folder() {
  return source_folder() / "tests" / "data";
}

std::optional<fs::path> shared_reference() {
  const char* given = std::getenv("INFERNO_SHARED");
  const fs::path shared = given != nullptr ? fs::path(given) : source_folder() / ".." / "shared";
  const fs::path reference = shared / "reference";
  return fs::is_directory(reference) ? std::optional(reference) : std::nullopt;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code missing;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, missing)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace inferno::testing
