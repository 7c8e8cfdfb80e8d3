// The twelve bytes in which Q4_K and Q5_K keep eight six-bit scales and eight six-bit offsets.
#pragma once

#include <cstdint>

namespace inferno::blocks {

struct KScales {
  std::uint8_t bytes[12];

  // Groups 0 to 3 fill the low six bits of bytes 0 to 3. The later four have their low nibble in bytes 8 to
  // 11 and their top two bits above those of the first four.
  constexpr int scale(int group) const {
    if (group < 4) return bytes[group] & 63;
    return (bytes[group + 4] & 0xF) | (bytes[group - 4] >> 6) << 4;
  }

  // The same, four bytes later, in the high nibbles.
  constexpr int offset(int group) const {
    if (group < 4) return bytes[group + 4] & 63;
    return (bytes[group + 4] >> 4) | (bytes[group] >> 6) << 4;
  }
};

}  // namespace inferno::blocks
