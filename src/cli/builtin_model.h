// The model inside the program: small, ours, and there without a download.
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "cli/builtin_files.h"
#include "cli/environment.h"

namespace inferno {

inline constexpr std::string_view builtin_name = "builtin";

// A directory with these files, under the folder for caches (XDG_CACHE_HOME/inferno, ~/.cache/inferno) or,
// where nothing can be written there, a temporary one. Files that are not what they should be are written
// anew; several processes may ask at once. Error{io} when there is no place for them.
std::filesystem::path unpack_model(std::span<const EmbeddedFile> files, const Environment& environment);

// unpack_model() of the built-in one.
std::filesystem::path builtin_model(const Environment& environment);

// Whether `path` is named as the folders are that builtin_model() returns. Reads no file.
bool is_builtin(const std::filesystem::path& path);

}  // namespace inferno
