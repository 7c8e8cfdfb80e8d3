// Narrow floats with values worked out by hand from the layouts.
#include "support/quantized_scene.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

using Fp8 = QuantizedScene;

TEST_F(Fp8, MultipliesByTheScaleOfTheBlock) {
  config(R"("quant_method": "fp8", "weight_block_size": [2, 32], "activation_scheme": "dynamic")");
  // 1.0 is 0x38. Three rows: the last block of rows has one.
  tensors({tensor_of("x.weight", "F8_E4M3", {3, 64}, Bytes(192, 0x38)),
           tensor_of("x.weight_scale_inv", "F32", {2, 2}, std::vector{1.0f, 2.0f, 3.0f, 4.0f})});
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[31], 1.0f);
  EXPECT_EQ(found[32], 2.0f);
  EXPECT_EQ(found[64 + 32], 2.0f);
  EXPECT_EQ(found[128], 3.0f);
  EXPECT_EQ(found[191], 4.0f);
  EXPECT_THAT(open()->notes(), ElementsAre(HasSubstr("rounds activations to FP8; Inferno does not")));
}

TEST_F(Fp8, ReadsScalesThatAreExponents) {
  config(R"("quant_method": "fp8", "weight_block_size": [128, 128])");
  tensors({tensor_of("x.weight", "F8_E4M3", {1, 32}, Bytes(32, 0x38)),
           tensor_of("x.weight_scale_inv", "F8_E8M0", {1, 1}, Bytes{129})});
  EXPECT_EQ(values("x.weight")[0], 4.0f);
}

TEST_F(Fp8, ReadsOneScaleForATensorOrForEachRow) {
  config(R"("quant_method": "fp8", "activation_scheme": "static")");
  tensors({tensor_of("x.weight", "F8_E4M3", {2, 32}, Bytes(64, 0xB8)),
           tensor_of("x.weight_scale", "F32", {}, std::vector{0.25f}),
           tensor_of("x.input_scale", "F32", {}, std::vector{7.0f})});
  EXPECT_EQ(values("x.weight")[63], -0.25f);
  tensors({tensor_of("x.weight", "F8_E4M3", {2, 32}, Bytes(64, 0xB8)),
           tensor_of("x.weight_scale", "F32", {2, 1}, std::vector{0.25f, 0.5f})});
  EXPECT_EQ(values("x.weight")[63], -0.5f);
}

TEST_F(Fp8, RefusesScalesThatDoNotFit) {
  config(R"("quant_method": "fp8", "weight_block_size": [128, 128])");
  tensors({tensor_of("x.weight", "F8_E4M3", {2, 32}, Bytes(64)),
           tensor_of("x.weight_scale_inv", "F32", {1, 3}, std::vector<float>(3))});
  EXPECT_THAT(refusal().what(), HasSubstr("has .weight_scale_inv of shape [1, 3], but "));
  tensors({tensor_of("x.weight", "F8_E4M3", {2, 32}, Bytes(64))});
  EXPECT_THAT(refusal().what(), HasSubstr("has FP8 codes, but no scale"));
  tensors({tensor_of("x.weight_scale_inv", "F32", {1, 1}, std::vector{1.0f})});
  EXPECT_THAT(refusal().what(), HasSubstr("has .weight_scale_inv, but no codes"));
}

TEST_F(Fp8, RefusesNanInWeightsAndScales) {
  config(R"("quant_method": "fp8")");
  tensors({tensor_of("x.weight", "F8_E4M3", {1, 32}, Bytes(32, 0x7F)),
           tensor_of("x.weight_scale", "F32", {1}, std::vector{1.0f})});
  EXPECT_THAT(reading_refusal().what(), HasSubstr("has an FP8 weight that is not a number"));
  tensors({tensor_of("x.weight", "F8_E4M3", {1, 32}, Bytes(32)),
           tensor_of("x.weight_scale", "F32", {1}, std::vector{std::numeric_limits<float>::quiet_NaN()})});
  EXPECT_THAT(reading_refusal().what(), HasSubstr("has a scale that is not a number"));
}

TEST_F(Fp8, RefusesE5M2) {
  config(R"("quant_method": "fp8")");
  tensors({tensor_of("x.weight", "F8_E5M2", {1, 32}, Bytes(32)),
           tensor_of("x.weight_scale", "F32", {1}, std::vector{1.0f})});
  EXPECT_THAT(refusal().what(), HasSubstr("F8_E5M2"));
}

using Nvfp4 = QuantizedScene;

TEST_F(Nvfp4, DividesOrMultipliesByTheTensorsFactor) {
  // Code 2 (1.0) in even columns, code 7 (6.0) in odd ones; scale 0x40 is 2.
  config(
      R"("quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized", "config_groups": {"group_0":
       {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "tensor_group"}}})");
  tensors({tensor_of("x.weight_packed", "U8", {1, 16}, Bytes(16, 0x72)),
           tensor_of("x.weight_scale", "F8_E4M3", {1, 2}, Bytes{0x40, 0x38}),
           tensor_of("x.weight_global_scale", "F32", {1}, std::vector{4.0f})});
  std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[0], 0.5f);
  EXPECT_EQ(found[1], 3.0f);
  EXPECT_EQ(found[17], 1.5f);
  config(R"("quant_method": "modelopt", "quant_algo": "NVFP4")");
  tensors({tensor_of("x.weight", "U8", {1, 16}, Bytes(16, 0x72)),
           tensor_of("x.weight_scale", "F8_E4M3", {1, 2}, Bytes{0x40, 0x38}),
           tensor_of("x.weight_scale_2", "F32", {}, std::vector{4.0f})});
  found = values("x.weight");
  EXPECT_EQ(found[0], 8.0f);
  EXPECT_EQ(found[1], 48.0f);
}

using Mxfp4 = QuantizedScene;

TEST_F(Mxfp4, BecomesTheBlocksOfGguf) {
  config(
      R"("quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "config_groups": {"group_0":
       {"targets": ["Linear"], "weights": {"num_bits": 4, "type": "float", "strategy": "group"}}})");
  tensors({tensor_of("x.weight_packed", "U8", {1, 16}, Bytes(16, 0xA2)),
           tensor_of("x.weight_scale", "U8", {1, 1}, Bytes{128})});
  EXPECT_EQ(format(), WeightFormat::mxfp4);
  EXPECT_EQ(values("x.weight")[0], 2.0f);
  EXPECT_EQ(values("x.weight")[31], -2.0f);
  tensors({tensor_of("x.weight_packed", "U8", {1, 16}, Bytes(16, 0xA2)),
           tensor_of("x.weight_scale", "U8", {1, 1}, Bytes{255})});
  EXPECT_THAT(reading_refusal().what(), HasSubstr("has a scale that is not a number"));
}

class Bitsandbytes : public QuantizedScene {
 protected:
  Bitsandbytes() { config(R"("load_in_4bit": true, "bnb_4bit_quant_type": "nf4")"); }
  // [2, 32]: one block of 64 over both rows.
  static std::vector<SafetensorsData> module(const std::string& state) {
    return {
        tensor_of("x.weight", "U8", {32, 1}, Bytes(32, 0x0F)),
        tensor_of("x.weight.absmax", "F32", {1}, std::vector{3.0f}),
        tensor_of("x.weight.quant_map", "F32", {16},
                  std::vector<float>(blocks::nf4_table.begin(), blocks::nf4_table.end())),
        tensor_of("x.weight.quant_state.bitsandbytes__nf4", "U8", {static_cast<std::int64_t>(state.size())},
                  std::vector<char>(state.begin(), state.end()))};
  }
  static constexpr const char* state = R"({"quant_type": "nf4", "blocksize": 64, "shape": [2, 32]})";
};

TEST_F(Bitsandbytes, HasTheFirstValueInTheHighHalf) {
  tensors(module(state));
  const std::vector<float> found = values("x.weight");
  EXPECT_EQ(found[0], -3.0f);
  EXPECT_EQ(found[1], 3.0f);
  EXPECT_EQ(found[62], -3.0f);
}

TEST_F(Bitsandbytes, RefusesStatesThatDoNotFit) {
  for (const char* wrong : {R"({"blocksize": 64, "shape": [2, 64]})", R"({"blocksize": 0, "shape": [2, 32]})",
                            R"({"blocksize": 64, "shape": [1e30, 32]})",
                            R"({"blocksize": 64, "shape": [64]})", R"({"shape": [2, 32]})", "not JSON"}) {
    tensors(module(wrong));
    EXPECT_EQ(refusal().kind(), ErrorKind::corrupt) << wrong;
  }
}

TEST_F(Bitsandbytes, RefusesAnotherTable) {
  auto parts = module(state);
  parts[2] = tensor_of("x.weight.quant_map", "F32", {16}, std::vector<float>(16, 1.0f));
  tensors(parts);
  EXPECT_THAT(refusal().what(), HasSubstr("has a quant_map of its own"));
}

TEST_F(Bitsandbytes, ReadsBytesWithTheLargestOfARow) {
  config(R"("load_in_8bit": true, "quant_method": "bitsandbytes")");
  tensors({tensor_of("x.weight", "I8", {1, 32}, std::vector<std::int8_t>(32, 127)),
           tensor_of("x.SCB", "F32", {1}, std::vector{2.0f}),
           tensor_of("x.weight_format", "U8", {}, Bytes{0})});
  EXPECT_EQ(format(), WeightFormat::int8_32);
  EXPECT_NEAR(values("x.weight")[0], 2.0f, 1e-6f);
}

}  // namespace
}  // namespace inferno
