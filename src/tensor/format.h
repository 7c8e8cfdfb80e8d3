// How weights are stored. A format is a struct in blocks/ and one line in each table below; both backends,
// the loaders and the conformance tests then know it.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "tensor/blocks/plain.h"
#include "tensor/blocks/quants_256.h"
#include "tensor/blocks/quants_32.h"
#include "tensor/blocks/scaled.h"

namespace inferno {

enum class WeightFormat : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  f8_e4m3,
  f8_e5m2,
  i64,
  i32,
  i16,
  i8,
  u8,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq3_s,
  iq4_nl,
  iq4_xs,
  tq2_0,
  mxfp4,
  // What quantized safetensors become in memory: blocks/scaled.h.
  int4_32,
  int4_64,
  int4_128,
  int8_16,
  int8_32,
  int8_64,
  fp8_32,
  fp8_128,
  nvfp4_32,
  nvfp4_64,
  nf4_32,
  nf4_64,
  fp4_32,
  fp4_64
};

// Every format there is, for tests and tables that must not forget one.
inline constexpr std::array all_formats = {
    WeightFormat::f64,      WeightFormat::f32,     WeightFormat::f16,      WeightFormat::bf16,
    WeightFormat::f8_e4m3,  WeightFormat::f8_e5m2, WeightFormat::i64,      WeightFormat::i32,
    WeightFormat::i16,      WeightFormat::i8,      WeightFormat::u8,       WeightFormat::q8_0,
    WeightFormat::q4_0,     WeightFormat::q4_1,    WeightFormat::q5_0,     WeightFormat::q5_1,
    WeightFormat::q2_k,     WeightFormat::q3_k,    WeightFormat::q4_k,     WeightFormat::q5_k,
    WeightFormat::q6_k,     WeightFormat::iq3_s,   WeightFormat::iq4_nl,   WeightFormat::iq4_xs,
    WeightFormat::tq2_0,    WeightFormat::mxfp4,   WeightFormat::int4_32,  WeightFormat::int4_64,
    WeightFormat::int4_128, WeightFormat::int8_16, WeightFormat::int8_32,  WeightFormat::int8_64,
    WeightFormat::fp8_32,   WeightFormat::fp8_128, WeightFormat::nvfp4_32, WeightFormat::nvfp4_64,
    WeightFormat::nf4_32,   WeightFormat::nf4_64,  WeightFormat::fp4_32,   WeightFormat::fp4_64};

template <class B>
concept Block = requires(const B block) {
  { B::elements } -> std::convertible_to<int>;
  { block[0] } -> std::same_as<float>;
};

// The only switch over WeightFormat in the program. -Wswitch-enum -Werror keeps it complete.
template <class Visitor>
constexpr decltype(auto) visit(WeightFormat format, Visitor&& visitor) {
  switch (format) {
    case WeightFormat::f64: return visitor(blocks::F64{});
    case WeightFormat::f16: return visitor(blocks::F16{});
    case WeightFormat::bf16: return visitor(blocks::Bf16{});
    case WeightFormat::f8_e4m3: return visitor(blocks::F8_E4M3{});
    case WeightFormat::f8_e5m2: return visitor(blocks::F8_E5M2{});
    case WeightFormat::i64: return visitor(blocks::I64{});
    case WeightFormat::i32: return visitor(blocks::I32{});
    case WeightFormat::i16: return visitor(blocks::I16{});
    case WeightFormat::i8: return visitor(blocks::I8{});
    case WeightFormat::u8: return visitor(blocks::U8{});
    case WeightFormat::q8_0: return visitor(blocks::Q8_0{});
    case WeightFormat::q4_0: return visitor(blocks::Q4_0{});
    case WeightFormat::q4_1: return visitor(blocks::Q4_1{});
    case WeightFormat::q5_0: return visitor(blocks::Q5_0{});
    case WeightFormat::q5_1: return visitor(blocks::Q5_1{});
    case WeightFormat::q2_k: return visitor(blocks::Q2_K{});
    case WeightFormat::q3_k: return visitor(blocks::Q3_K{});
    case WeightFormat::q4_k: return visitor(blocks::Q4_K{});
    case WeightFormat::q5_k: return visitor(blocks::Q5_K{});
    case WeightFormat::q6_k: return visitor(blocks::Q6_K{});
    case WeightFormat::iq3_s: return visitor(blocks::Iq3_S{});
    case WeightFormat::iq4_nl: return visitor(blocks::Iq4_NL{});
    case WeightFormat::iq4_xs: return visitor(blocks::Iq4_XS{});
    case WeightFormat::tq2_0: return visitor(blocks::Tq2_0{});
    case WeightFormat::mxfp4: return visitor(blocks::Mxfp4{});
    case WeightFormat::int4_32: return visitor(blocks::Int4<32>{});
    case WeightFormat::int4_64: return visitor(blocks::Int4<64>{});
    case WeightFormat::int4_128: return visitor(blocks::Int4<128>{});
    case WeightFormat::int8_16: return visitor(blocks::Int8<16>{});
    case WeightFormat::int8_32: return visitor(blocks::Int8<32>{});
    case WeightFormat::int8_64: return visitor(blocks::Int8<64>{});
    case WeightFormat::fp8_32: return visitor(blocks::Fp8<32>{});
    case WeightFormat::fp8_128: return visitor(blocks::Fp8<128>{});
    case WeightFormat::nvfp4_32: return visitor(blocks::Nvfp4<32>{});
    case WeightFormat::nvfp4_64: return visitor(blocks::Nvfp4<64>{});
    case WeightFormat::nf4_32: return visitor(blocks::Nf4<32>{});
    case WeightFormat::nf4_64: return visitor(blocks::Nf4<64>{});
    case WeightFormat::fp4_32: return visitor(blocks::Fp4<32>{});
    case WeightFormat::fp4_64: return visitor(blocks::Fp4<64>{});
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

// Weights back to float: decodes out.size() elements, a multiple of block_elements(format), from exactly as
// many blocks. The blocks may start at any address.
void decode(WeightFormat format, std::span<const std::byte> blocks, std::span<float> out);

// Lower case, as in "q4_k" or "bf16": what inspect, bench and error messages say.
std::string_view name_of(WeightFormat format);
std::optional<WeightFormat> format_named(std::string_view name);

}  // namespace inferno
