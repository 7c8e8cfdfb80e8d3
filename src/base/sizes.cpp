#include "base/sizes.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <cstddef>

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

std::string grouped(std::uint64_t number) {
  std::string text = fmt::format("{}", number);
  for (std::size_t at = text.size(); at > 3; at -= 3) text.insert(at - 3, ",");
  return text;
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view units = "kmgt";
  double number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem != std::errc() || !(number >= 0)) return std::nullopt;
  const std::string_view suffix = text.substr(static_cast<std::size_t>(end - text.data()));
  if (!suffix.empty() && suffix != "B") {
    const bool is_upper = suffix[0] >= 'A' && suffix[0] <= 'Z';
    const std::size_t unit = units.find(is_upper ? static_cast<char>(suffix[0] - 'A' + 'a') : suffix[0]);
    const std::string_view rest = suffix.substr(1);
    if (unit == std::string_view::npos || (!rest.empty() && rest != "B" && rest != "iB")) return std::nullopt;
    const bool is_binary = rest == "iB" || (rest.empty() && is_upper);
    for (std::size_t i = 0; i <= unit; ++i) number *= is_binary ? 1024 : 1000;
  }
  constexpr double max_size = 9.2e18;  // 2^63
  if (!(number <= max_size) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::uint64_t>(number);
}

}  // namespace inferno
