// The location of the reference data. Tests that need it are skipped, with a message, if it is absent.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include "support/source_dir.h"

namespace inferno {

inline std::filesystem::path reference_folder() {
  const char* given = std::getenv("INFERNO_SHARED");
  const std::filesystem::path shared = given != nullptr
                                           ? std::filesystem::path(given)
                                           : std::filesystem::path(INFERNO_SOURCE_DIR) / ".." / "shared";
  return shared / "reference";
}

}  // namespace inferno
