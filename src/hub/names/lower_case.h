// Names of files and formats are compared without regard to case, in ASCII: they come from other systems.
#pragma once

#include <cctype>
#include <string>
#include <string_view>

namespace inferno::hub {

inline std::string lower_case(std::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

}  // namespace inferno::hub
