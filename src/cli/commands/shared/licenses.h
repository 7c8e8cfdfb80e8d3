// The licenses of this program and of the libraries that are part of it, for `inferno --licenses`.
#pragma once

#include <span>
#include <string>

#include "catalogue/builtin_model.h"

namespace inferno {

// One text for each library, from packaging/licenses; defined in a generated file.
std::span<const EmbeddedFile> license_files();

// All of them, the program's own first.
std::string licenses();

}  // namespace inferno
