#include "tensor/format.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace inferno {
namespace {

constexpr std::array names = {
    std::pair{WeightFormat::f64, std::string_view("f64")},
    std::pair{WeightFormat::f32, std::string_view("f32")},
    std::pair{WeightFormat::f16, std::string_view("f16")},
    std::pair{WeightFormat::bf16, std::string_view("bf16")},
    std::pair{WeightFormat::f8_e4m3, std::string_view("f8_e4m3")},
    std::pair{WeightFormat::f8_e5m2, std::string_view("f8_e5m2")},
    std::pair{WeightFormat::i64, std::string_view("i64")},
    std::pair{WeightFormat::i32, std::string_view("i32")},
    std::pair{WeightFormat::i16, std::string_view("i16")},
    std::pair{WeightFormat::i8, std::string_view("i8")},
    std::pair{WeightFormat::u8, std::string_view("u8")},
    std::pair{WeightFormat::q8_0, std::string_view("q8_0")},
    std::pair{WeightFormat::q4_0, std::string_view("q4_0")},
    std::pair{WeightFormat::q4_1, std::string_view("q4_1")},
    std::pair{WeightFormat::q5_0, std::string_view("q5_0")},
    std::pair{WeightFormat::q5_1, std::string_view("q5_1")},
    std::pair{WeightFormat::q2_k, std::string_view("q2_k")},
    std::pair{WeightFormat::q3_k, std::string_view("q3_k")},
    std::pair{WeightFormat::q4_k, std::string_view("q4_k")},
    std::pair{WeightFormat::q5_k, std::string_view("q5_k")},
    std::pair{WeightFormat::q6_k, std::string_view("q6_k")},
    std::pair{WeightFormat::iq3_s, std::string_view("iq3_s")},
    std::pair{WeightFormat::iq4_nl, std::string_view("iq4_nl")},
    std::pair{WeightFormat::iq4_xs, std::string_view("iq4_xs")},
    std::pair{WeightFormat::tq2_0, std::string_view("tq2_0")},
    std::pair{WeightFormat::mxfp4, std::string_view("mxfp4")},
    std::pair{WeightFormat::int4_32, std::string_view("int4_32")},
    std::pair{WeightFormat::int4_64, std::string_view("int4_64")},
    std::pair{WeightFormat::int4_128, std::string_view("int4_128")},
    std::pair{WeightFormat::int8_16, std::string_view("int8_16")},
    std::pair{WeightFormat::int8_32, std::string_view("int8_32")},
    std::pair{WeightFormat::int8_64, std::string_view("int8_64")},
    std::pair{WeightFormat::fp8_32, std::string_view("fp8_32")},
    std::pair{WeightFormat::fp8_128, std::string_view("fp8_128")},
    std::pair{WeightFormat::nvfp4_32, std::string_view("nvfp4_32")},
    std::pair{WeightFormat::nvfp4_64, std::string_view("nvfp4_64")},
    std::pair{WeightFormat::nf4_32, std::string_view("nf4_32")},
    std::pair{WeightFormat::nf4_64, std::string_view("nf4_64")},
    std::pair{WeightFormat::fp4_32, std::string_view("fp4_32")},
    std::pair{WeightFormat::fp4_64, std::string_view("fp4_64")},
};

}  // namespace

void decode(WeightFormat format, std::span<const std::byte> blocks, std::span<float> out) {
  visit(format, [&]<Block B>(B block) {
    constexpr std::size_t elements = B::elements;
    expects(out.size() % elements == 0, "decode: the output is whole blocks");
    expects(blocks.size() == out.size() / elements * sizeof(B), "decode: input and output agree in size");
    for (std::size_t first = 0, at = 0; first < out.size(); first += elements, at += sizeof(B)) {
      std::memcpy(&block, blocks.data() + at, sizeof(B));
      for (int i = 0; i < B::elements; ++i) out[first + static_cast<std::size_t>(i)] = block[i];
    }
  });
}

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
