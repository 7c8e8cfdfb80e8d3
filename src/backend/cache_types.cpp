#include "backend/cache_types.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/utf8.h"

namespace inferno {
namespace {

// vLLM also says fp8_e4m3.
constexpr std::array words = {std::pair{std::string_view("f32"), DType::f32},
                              std::pair{std::string_view("f16"), DType::f16},
                              std::pair{std::string_view("bf16"), DType::bf16},
                              std::pair{std::string_view("q8_0"), DType::q8_0},
                              std::pair{std::string_view("fp8"), DType::f8_e4m3},
                              std::pair{std::string_view("fp8_e4m3"), DType::f8_e4m3}};

std::string_view word_of(std::optional<DType> type) {
  for (const auto& [word, meaning] : words) {
    if (meaning == type) return word;
  }
  return "auto";
}

std::string pair_of(std::string_view keys, std::string_view values) {
  return keys == values ? std::string(keys) : fmt::format("{},{}", keys, values);
}

}  // namespace

std::string name_of(CacheTypes types) {
  return pair_of(word_of(types.keys), word_of(types.values));
}

std::optional<Advice> refuses_head(CacheTypes types, int head_dim) {
  for (const DType type : {types.keys, types.values}) {
    if (head_dim % block_elements(type) == 0) continue;
    return Advice{.why = fmt::format("its blocks have {} elements, and a head of this model has {}",
                                     block_elements(type), head_dim),
                  .next = "use fp8, f16 or bf16"};
  }
  return std::nullopt;
}

std::string name_of(const CacheChoice& choice) {
  return pair_of(word_of(choice.keys), word_of(choice.values));
}

std::optional<DType> parse_cache_type(std::string_view word, std::string_view origin) {
  if (word == "auto") return std::nullopt;
  for (const auto& [known, type] : words) {
    if (known == word) return type;
  }
  fail(ErrorKind::invalid_request,
       fmt::format("{} {}: expected auto, f32, f16, bf16, q8_0 or fp8", origin, quote(word)));
}

CacheChoice parse_cache_choice(std::string_view text, std::string_view origin) {
  if (text.empty()) return {};
  const std::size_t comma = text.find(',');
  const std::optional<DType> keys = parse_cache_type(text.substr(0, comma), origin);
  if (comma == std::string_view::npos) return {keys, keys};
  return {keys, parse_cache_type(text.substr(comma + 1), origin)};
}

}  // namespace inferno
