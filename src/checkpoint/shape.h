// Shapes out of a file.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>

#include "base/checked.h"

namespace inferno {

// nullopt also when a product of some of the dimensions would not fit 63 bits, even if a zero among them
// makes the whole product small: whoever uses the shape may multiply any of them.
constexpr std::optional<std::uint64_t> sound_elements(std::span<const std::int64_t> shape) {
  std::uint64_t largest = 1;
  for (const std::int64_t size : shape) {
    if (size < 0) return std::nullopt;
    const auto next = checked::mul(largest, size == 0 ? 1 : static_cast<std::uint64_t>(size));
    if (!next || *next > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return std::nullopt;
    largest = *next;
  }
  return checked::elements(shape);
}

}  // namespace inferno
