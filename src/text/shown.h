// Text out of a file, fit to stand in an error message: quoted, on one line, not endless.
#pragma once

#include <string>
#include <string_view>

namespace inferno {

// `text` with control characters and broken UTF-8 escaped, cut after about `most` bytes.
std::string shown(std::string_view text, std::size_t most = 80);

}  // namespace inferno
