#include "base/sizes.h"

#include <fmt/format.h>

namespace inferno {

std::string human_size(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  auto value = static_cast<double>(bytes);
  for (const char* unit : {"kB", "MB", "GB"}) {
    value /= 1000;
    // 999.95 would be printed as "1000.0".
    if (value < 999.95) return fmt::format("{:.1f} {}", value, unit);
  }
  return fmt::format("{:.1f} TB", value / 1000);
}

std::string human_count(std::uint64_t count) {
  const auto value = static_cast<double>(count);
  // 999.995 would be printed as "1000.00".
  if (value >= 999.995e6) return fmt::format("{:.2f} B", value / 1e9);
  if (value >= 1e6) return fmt::format("{:.2f} M", value / 1e6);
  return fmt::format("{}", count);
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

}  // namespace inferno
