// Integer weights with words and values worked out by hand from the layouts.
#include <bit>

#include "support/quantized_scene.h"
#include "tensor/float16.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Words = std::vector<std::uint32_t>;
using Halves = std::vector<std::uint16_t>;

constexpr std::uint16_t one = 0x3C00, half = 0x3800;  // f16

class Gptq : public QuantizedScene {
 protected:
  // 32 columns, 8 rows, one group. Column c of every row has code c % 16; row n has scale 2^-n.
  Gptq() { config(R"("quant_method": "gptq", "bits": 4, "group_size": 32, "sym": false)"); }
  static std::vector<SafetensorsData> module(std::uint32_t zeros) {
    Words codes;
    for (int line = 0; line < 4; ++line)
      codes.insert(codes.end(), 8, line % 2 == 0 ? 0x76543210u : 0xFEDCBA98u);
    Halves scales;
    for (int n = 0; n < 8; ++n) scales.push_back(float_to_f16(std::ldexp(1.0f, -n)));
    std::vector<std::int32_t> groups(32, 0);
    return {tensor_of("x.qweight", "I32", {4, 8}, codes), tensor_of("x.qzeros", "I32", {1, 1}, Words{zeros}),
            tensor_of("x.scales", "F16", {1, 8}, scales), tensor_of("x.g_idx", "I32", {32}, groups)};
  }
};

TEST_F(Gptq, AddsOneToTheZeroPointsOfTheFirstVersion) {
  tensors(module(0x77777777));
  EXPECT_EQ(format(), WeightFormat::int4_32);
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[0], -8.0f);
  EXPECT_EQ(found[9], 1.0f);
  EXPECT_EQ(found[31], 7.0f);
  EXPECT_EQ(found[3 * 32 + 10], 0.25f);  // row 3: 2 * 2^-3
}

TEST_F(Gptq, KeepsTheZeroPointsOfTheSecondVersion) {
  config(R"("quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq_v2")");
  tensors(module(0x77777777));
  EXPECT_EQ(values("x.weight")[0], -7.0f);
}

TEST_F(Gptq, UndoesTheBorrowOfAZeroPointOfZero) {
  // Zero points 0, 8, 8, ... less one each, as one number: 0x88888880 - 0x11111111.
  tensors(module(0x7777776F));
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[1], 1.0f);           // row 0: 1 - 0
  EXPECT_EQ(found[32 + 9], 0.5f);      // row 1: (9 - 8) / 2
  EXPECT_EQ(found[7 * 32], -0.0625f);  // row 7: (0 - 8) / 128
}

TEST_F(Gptq, MakesQ4_0OfSymmetricWeights) {
  config(R"("quant_method": "gptq", "bits": 4, "group_size": 32, "sym": true)");
  tensors(module(0x77777777));
  EXPECT_EQ(format(), WeightFormat::q4_0);
  EXPECT_EQ(values("x.weight")[15], 7.0f);
  tensors(module(0x77777776));
  EXPECT_THAT(reading_refusal().what(),
              HasSubstr("\"x\" has a zero point of 7, but the config says \"sym\""));
}

TEST_F(Gptq, SortsColumnsByGroup) {
  config(R"("quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": true)");
  // 64 columns, even ones in group 1.
  Words codes;
  for (int line = 0; line < 8; ++line) codes.insert(codes.end(), 8, 0x76543210u);
  std::vector<std::int32_t> groups;
  for (int c = 0; c < 64; ++c) groups.push_back(c % 2 == 0 ? 1 : 0);
  Halves scales(16, one);
  std::fill(scales.begin() + 8, scales.end(), half);
  tensors({tensor_of("x.qweight", "I32", {8, 8}, codes),
           tensor_of("x.qzeros", "I32", {2, 1}, Words{0xFFFFFFFF, 0xFFFFFFFF}),
           tensor_of("x.scales", "F16", {2, 8}, scales), tensor_of("x.g_idx", "I32", {64}, groups)});
  const auto checkpoint = open();
  const auto order = checkpoint->find("x.weight")->column_order;
  ASSERT_NE(order, nullptr);
  EXPECT_EQ((*order)[0], 1);
  EXPECT_EQ((*order)[31], 63);
  EXPECT_EQ((*order)[32], 0);
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[0], 1.0f);   // column 1, group 0
  EXPECT_EQ(found[33], 1.0f);  // column 2, group 1: 2 * 0.5
}

TEST_F(Gptq, RefusesGroupsOutOfRange) {
  auto parts = module(0x77777777);
  std::vector<std::int32_t> groups(32, 0);
  groups[5] = 1;
  parts[3] = tensor_of("x.g_idx", "I32", {32}, groups);
  tensors(parts);
  EXPECT_THAT(refusal().what(), HasSubstr("\"x\" has group 1 in .g_idx, but 1 groups of scales"));
}

TEST_F(Gptq, RefusesSetsThatDoNotFit) {
  auto parts = module(0x77777777);
  parts.erase(parts.begin() + 1);
  tensors(parts);
  EXPECT_THAT(refusal().what(), HasSubstr("lacks its .qzeros"));
  parts = module(0x77777777);
  parts[3] = tensor_of("x.g_idx", "I32", {31}, std::vector<std::int32_t>(31));
  tensors(parts);
  EXPECT_THAT(refusal().what(), HasSubstr("has .g_idx of shape [31], expected [32]"));
  parts = module(0x77777777);
  parts.push_back(patterned_tensor("x.weight", "F32", {8, 32}));
  tensors(parts);
  EXPECT_THAT(refusal().what(), HasSubstr("has both .qweight and .weight"));
}

TEST_F(Gptq, RefusesScalesThatAreNotFinite) {
  auto parts = module(0x77777777);
  parts[2] = tensor_of("x.scales", "F16", {1, 8}, Halves(8, 0x7C00));
  tensors(parts);
  EXPECT_THAT(reading_refusal().what(), HasSubstr("\"x\" has a scale that is infinite"));
}

TEST_F(Gptq, RefusesScalesOfAnotherType) {
  auto parts = module(0x77777777);
  parts[2] = tensor_of("x.scales", "I16", {1, 8}, Halves(8, one));
  tensors(parts);
  EXPECT_THAT(refusal().what(), HasSubstr("has .scales of type I16"));
}

TEST_F(Gptq, NamesBothSidesOfAContradiction) {
  tensors(module(0x77777777));
  config(R"("quant_method": "gptq", "bits": 8, "group_size": 32)");
  EXPECT_THAT(refusal().what(), HasSubstr("\"x\" has 4 bits, but "));
  EXPECT_THAT(refusal().what(), HasSubstr("\"quantization_config.bits\" says 8 bits"));
  config(R"("quant_method": "gptq", "bits": 4, "group_size": 16)");
  EXPECT_THAT(refusal().what(), HasSubstr("says groups of 16 columns"));
  config(R"("quant_method": "gptq", "bits": 4, "group_size": 32, "dynamic": {"-:x": {}})");
  EXPECT_THAT(refusal().what(), HasSubstr("says that it is not quantized"));
}

TEST_F(Gptq, FollowsTheFirstRuleThatFits) {
  config(R"("quant_method": "gptq", "bits": 8, "group_size": 16,
            "dynamic": {"-:y": {}, "+:x": {"bits": 4, "group_size": 32}, ".*": {"bits": 8}})");
  tensors(module(0x77777777));
  EXPECT_EQ(values("x.weight")[0], -8.0f);
}

using Awq = QuantizedScene;

TEST_F(Awq, PacksOutputsInItsOwnOrder) {
  config(R"("quant_method": "awq", "bits": 4, "group_size": 32, "zero_point": true, "version": "gemm")");
  tensors({tensor_of("x.qweight", "I32", {32, 1}, Words(32, 0x76543210u)),
           tensor_of("x.qzeros", "I32", {1, 1}, Words{0x11111111u}),
           tensor_of("x.scales", "F16", {1, 8}, Halves(8, one))});
  const std::vector<float> found = values("x.weight");
  // Outputs 0 to 7 have the codes 0, 4, 1, 5, 2, 6, 3, 7, less the zero point.
  for (const auto& [row, value] : {std::pair{0u, -1.0f},
                                   {1u, 3.0f},
                                   {2u, 0.0f},
                                   {3u, 4.0f},
                                   {4u, 1.0f},
                                   {5u, 5.0f},
                                   {6u, 2.0f},
                                   {7u, 6.0f}}) {
    EXPECT_EQ(found[row * 32], value) << row;
    EXPECT_EQ(found[row * 32 + 31], value) << row;
  }
}

using Compressed = QuantizedScene;
constexpr std::string_view packed_config =
    R"("quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"group_0":
       {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 32}}})";

TEST_F(Compressed, SubtractsSignedZeroPoints) {
  config(packed_config);
  // Codes 0 to 7 mean -8 to -1; zero points 9 and 15 mean 1 and 7, in the first and the second row.
  tensors({tensor_of("x.weight_packed", "I32", {2, 4}, Words(8, 0x76543210u)),
           tensor_of("x.weight_scale", "BF16", {2, 1}, Halves{0x3F80, 0x4000}),
           tensor_of("x.weight_zero_point", "I32", {1, 1}, Words{0x000000F9u}),
           tensor_of("x.weight_shape", "I64", {2}, std::vector<std::int64_t>{2, 32})});
  EXPECT_EQ(format(), WeightFormat::int4_32);
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[0], -9.0f);
  EXPECT_EQ(found[7], -2.0f);
  EXPECT_EQ(found[32], -30.0f);
}

TEST_F(Compressed, ReadsBytesWithAScaleForEachRow) {
  config(R"("quant_method": "compressed-tensors", "format": "int-quantized", "config_groups": {"group_0":
       {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "int", "strategy": "channel"}}})");
  std::vector<std::int8_t> codes(64, -128);
  codes[63] = 127;
  tensors({tensor_of("x.weight", "I8", {2, 32}, codes),
           tensor_of("x.weight_scale", "F32", {2, 1}, std::vector{0.1f, 0.5f}),
           tensor_of("x.input_scale", "F32", {1}, std::vector{3.0f})});
  EXPECT_THAT(open()->names(), ElementsAre("x.weight"));
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[0], -128.0f * 0.1f);
  EXPECT_EQ(found[63], 63.5f);
}

TEST_F(Compressed, RefusesOtherWidths) {
  config(packed_config);
  tensors({tensor_of("x.weight_packed", "I32", {1, 3}, Words(3)),
           tensor_of("x.weight_scale", "BF16", {1, 1}, Halves{one}),
           tensor_of("x.weight_shape", "I64", {2}, std::vector<std::int64_t>{1, 32})});
  EXPECT_THAT(refusal().what(), HasSubstr("has 3 words for 32 columns"));
}

// `plan` fetches headers only; what follows them reads as zeros.
TEST_F(Compressed, OpensAFileOfWhichOnlyTheHeaderIsHere) {
  config(packed_config);
  tensors({tensor_of("x.weight_packed", "I32", {2, 8}, Words(16)),
           tensor_of("x.weight_scale", "BF16", {2, 2}, Halves(4)),
           tensor_of("x.weight_shape", "I64", {2}, std::vector<std::int64_t>{0, 0})});
  EXPECT_THAT(open()->find("x.weight")->shape, ElementsAre(2, 64));
}

TEST_F(Compressed, RefusesShapesThatCannotBe) {
  config(packed_config);
  for (const std::int64_t size : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 40}) {
    tensors({tensor_of("x.weight_packed", "I32", {1, 4}, Words(4)),
             tensor_of("x.weight_scale", "BF16", {1, 1}, Halves{one}),
             tensor_of("x.weight_shape", "I64", {2}, std::vector<std::int64_t>{1, size})});
    EXPECT_THAT(refusal().what(), HasSubstr("has a .weight_shape of [1, "));
  }
}

}  // namespace
}  // namespace inferno
