// The rule for every fuzz target: success, or an Error of an expected kind that names its source. Anything
// else ends the process, which libFuzzer reports.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace inferno::fuzz {

inline constexpr const char* origin = "fuzzed";

inline std::vector<std::byte> bytes(const std::uint8_t* data, std::size_t size) {
  const auto view = std::as_bytes(std::span(data, size));
  return {view.begin(), view.end()};
}

inline std::string_view text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline void guard(const std::function<void()>& subject) {
  try {
    subject();
  } catch (const Error& error) {
    const bool expected = error.kind() == ErrorKind::corrupt || error.kind() == ErrorKind::unsupported;
    if (!expected || std::string_view(error.what()).find(origin) == std::string_view::npos) std::abort();
  }
}

}  // namespace inferno::fuzz
