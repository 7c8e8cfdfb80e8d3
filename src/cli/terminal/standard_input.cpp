#include "cli/terminal/standard_input.h"

#include <array>
#include <cstdio>

#include "base/error.h"

namespace inferno {

std::string read_standard_input() {
  std::string text;
  std::array<char, 1 << 16> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), stdin))
    text.append(buffer.data(), count);
  if (std::ferror(stdin) != 0) fail(ErrorKind::io, "standard input: reading failed");
  return text;
}

}  // namespace inferno
