// SHA-256 and base64.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace inferno::server {

using Digest = std::array<unsigned char, 32>;

Digest sha256(std::string_view bytes);

std::string base64(std::string_view bytes);
std::string base64(const Digest& digest);
// Empty if the text is not base64.
std::string from_base64(std::string_view text);

}  // namespace inferno::server
