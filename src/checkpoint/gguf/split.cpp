#include "checkpoint/gguf/split.h"

#include <fmt/format.h>

#include <charconv>

namespace inferno {
namespace {

std::optional<int> five_digits(std::string_view text) {
  int value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool complete = problem == std::errc() && end == text.data() + text.size();
  return complete && value >= 1 ? std::optional(value) : std::nullopt;
}

}  // namespace

std::optional<GgufSplitName> parse_gguf_split_name(std::string_view file_name) {
  constexpr std::string_view pattern = "-00000-of-00000.gguf";
  if (file_name.size() < pattern.size()) return std::nullopt;
  const std::string_view tail = file_name.substr(file_name.size() - pattern.size());
  const auto number = five_digits(tail.substr(1, 5));
  const auto count = five_digits(tail.substr(10, 5));
  if (!number || !count || *number > *count || tail[0] != '-' || tail.substr(6, 4) != "-of-" ||
      tail.substr(15) != ".gguf") {
    return std::nullopt;
  }
  return GgufSplitName{std::string(file_name.substr(0, file_name.size() - pattern.size())), *number, *count};
}

std::string gguf_split_name(std::string_view stem, int number, int count) {
  return fmt::format("{}-{:05}-of-{:05}.gguf", stem, number, count);
}

}  // namespace inferno
