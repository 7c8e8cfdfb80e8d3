// How weights are stored. A format is one header in blocks/ and one line in each table below;
// both backends, the loaders and the conformance tests then know it.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "tensor/blocks/mxfp4.h"
#include "tensor/blocks/plain.h"
#include "tensor/blocks/q8_0.h"

namespace inferno {

enum class WeightFormat : std::uint8_t { f32, f16, bf16, q8_0, mxfp4 };

template <class B>
concept Block = requires(const B block) {
  { B::elements } -> std::convertible_to<int>;
  { block[0] } -> std::same_as<float>;
};

// The only switch over WeightFormat in the program. -Wswitch-enum -Werror keeps it complete.
template <class Visitor>
constexpr decltype(auto) visit(WeightFormat format, Visitor&& visitor) {
  switch (format) {
    case WeightFormat::f16: return visitor(blocks::F16{});
    case WeightFormat::bf16: return visitor(blocks::Bf16{});
    case WeightFormat::q8_0: return visitor(blocks::Q8_0{});
    case WeightFormat::mxfp4: return visitor(blocks::Mxfp4{});
    case WeightFormat::f32: break;
  }
  return visitor(blocks::F32{});
}

// Elements of one block: rows of a matrix must be a multiple of it.
constexpr int block_elements(WeightFormat format) {
  return visit(format, []<Block B>(B) { return B::elements; });
}

constexpr std::size_t block_bytes(WeightFormat format) {
  return visit(format, []<Block B>(B) { return sizeof(B); });
}

// For a count already known to be a multiple of block_elements(format).
constexpr std::size_t bytes_for(WeightFormat format, std::size_t elements) {
  return elements / static_cast<std::size_t>(block_elements(format)) * block_bytes(format);
}

// Lower case, as in "q4_k" or "bf16": what inspect, bench and error messages say.
std::string_view name_of(WeightFormat format);
std::optional<WeightFormat> format_named(std::string_view name);

}  // namespace inferno
