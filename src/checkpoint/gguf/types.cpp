#include "checkpoint/gguf/types.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace inferno {
namespace {

struct GgmlType {
  std::uint32_t number;
  std::string_view name;
  std::optional<WeightFormat> format;
};

constexpr std::array types = {
    GgmlType{0, "F32", WeightFormat::f32},
    GgmlType{1, "F16", WeightFormat::f16},
    GgmlType{2, "Q4_0", WeightFormat::q4_0},
    GgmlType{3, "Q4_1", WeightFormat::q4_1},
    GgmlType{4, "Q4_2 (withdrawn)", {}},
    GgmlType{5, "Q4_3 (withdrawn)", {}},
    GgmlType{6, "Q5_0", WeightFormat::q5_0},
    GgmlType{7, "Q5_1", WeightFormat::q5_1},
    GgmlType{8, "Q8_0", WeightFormat::q8_0},
    GgmlType{9, "Q8_1", {}},
    GgmlType{10, "Q2_K", WeightFormat::q2_k},
    GgmlType{11, "Q3_K", WeightFormat::q3_k},
    GgmlType{12, "Q4_K", WeightFormat::q4_k},
    GgmlType{13, "Q5_K", WeightFormat::q5_k},
    GgmlType{14, "Q6_K", WeightFormat::q6_k},
    GgmlType{15, "Q8_K", {}},
    GgmlType{16, "IQ2_XXS", {}},
    GgmlType{17, "IQ2_XS", {}},
    GgmlType{18, "IQ3_XXS", {}},
    GgmlType{19, "IQ1_S", {}},
    GgmlType{20, "IQ4_NL", WeightFormat::iq4_nl},
    GgmlType{21, "IQ3_S", WeightFormat::iq3_s},
    GgmlType{22, "IQ2_S", {}},
    GgmlType{23, "IQ4_XS", WeightFormat::iq4_xs},
    GgmlType{24, "I8", WeightFormat::i8},
    GgmlType{25, "I16", WeightFormat::i16},
    GgmlType{26, "I32", WeightFormat::i32},
    GgmlType{27, "I64", WeightFormat::i64},
    GgmlType{28, "F64", WeightFormat::f64},
    GgmlType{29, "IQ1_M", {}},
    GgmlType{30, "BF16", WeightFormat::bf16},
    GgmlType{31, "Q4_0_4_4 (withdrawn)", {}},
    GgmlType{32, "Q4_0_4_8 (withdrawn)", {}},
    GgmlType{33, "Q4_0_8_8 (withdrawn)", {}},
    GgmlType{34, "TQ1_0", {}},
    GgmlType{35, "TQ2_0", WeightFormat::tq2_0},
    GgmlType{36, "IQ4_NL_4_4 (withdrawn)", {}},
    GgmlType{37, "IQ4_NL_4_8 (withdrawn)", {}},
    GgmlType{38, "IQ4_NL_8_8 (withdrawn)", {}},
    GgmlType{39, "MXFP4", WeightFormat::mxfp4},
    GgmlType{40, "NVFP4", {}},
    GgmlType{41, "Q1_0", {}},
    GgmlType{42, "Q2_0", {}},
};

const GgmlType* find(std::uint32_t number) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const GgmlType& type) { return type.number == number; });
  return found == types.end() ? nullptr : &*found;
}

}  // namespace

std::optional<WeightFormat> ggml_format(std::uint32_t number) {
  const GgmlType* type = find(number);
  return type == nullptr ? std::nullopt : type->format;
}

std::optional<std::uint32_t> ggml_number(WeightFormat format) {
  const auto found =
      std::find_if(types.begin(), types.end(), [&](const GgmlType& type) { return type.format == format; });
  return found == types.end() ? std::nullopt : std::optional(found->number);
}

std::string ggml_type_name(std::uint32_t number) {
  const GgmlType* type = find(number);
  return type == nullptr ? fmt::format("type {}", number) : std::string(type->name);
}

}  // namespace inferno
