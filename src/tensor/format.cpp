#include "tensor/format.h"

#include <array>
#include <utility>

namespace inferno {
namespace {

constexpr std::array names = {
    std::pair{WeightFormat::f32, std::string_view("f32")},
    std::pair{WeightFormat::f16, std::string_view("f16")},
    std::pair{WeightFormat::bf16, std::string_view("bf16")},
    std::pair{WeightFormat::q8_0, std::string_view("q8_0")},
    std::pair{WeightFormat::mxfp4, std::string_view("mxfp4")},
};

}  // namespace

std::string_view name_of(WeightFormat format) {
  for (const auto& [known, name] : names) {
    if (known == format) return name;
  }
  return "unknown";
}

std::optional<WeightFormat> format_named(std::string_view name) {
  for (const auto& [format, known] : names) {
    if (known == name) return format;
  }
  return std::nullopt;
}

}  // namespace inferno
