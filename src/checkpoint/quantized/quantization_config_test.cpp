// What is refused, with the file, the field, its value and what to use instead; and which rules mean which
// module.
#include "checkpoint/quantized/quantization_config.h"

#include "support/quantized_scene.h"

namespace inferno {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Refusals : public QuantizedScene {
 protected:
  Refusals() { tensors({patterned_tensor("w", "F32", {1})}); }
};

TEST_F(Refusals, NameFileFieldValueReasonAndAlternative) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("quant_method": "quark")", R"("quantization_config.quant_method" = "quark")"},
      {R"("quant_method": "torchao")", "torchao"},
      {R"("quant_method": "hqq")", "hqq"},
      {R"("quant_method": "aqlm")", "aqlm"},
      {R"("quant_method": "eetq")", "eetq"},
      {R"("quant_method": "quanto")", "quanto"},
      {R"("quant_method": "vptq")", "vptq"},
      {R"("quant_method": "spqr")", "spqr"},
      {R"("quant_method": "higgs")", "higgs"},
      {R"("quant_method": "bitnet")", "bitnet"},
      {R"("quant_method": "of tomorrow")", "of tomorrow"},
      {R"("bits": 4)", "quant_method"},
      {R"("quant_method": "gptq", "bits": 3)", R"("quantization_config.bits" = "3")"},
      {R"("quant_method": "gptq", "checkpoint_format": "marlin")", "marlin"},
      {R"("quant_method": "gptq", "checkpoint_format": "bitblas")", "bitblas"},
      {R"("quant_method": "gptq", "is_marlin_format": true)", "is_marlin_format"},
      {R"("quant_method": "gptq", "pack_dtype": "int64")", "pack_dtype"},
      {R"("quant_method": "gptq", "adapter": {"r": 1})", "adapter"},
      {R"("quant_method": "awq", "version": "gemv_fast")", "gemv_fast"},
      {R"("quant_method": "awq", "backend": "llm-awq")", "llm-awq"},
      {R"("quant_method": "awq", "bits": 8)", "bits"},
      {R"("quant_method": "auto-round", "packing_format": "auto_round:llm_compressor")", "packing_format"},
      {R"("quant_method": "auto-round", "packing_format": "auto_round", "data_type": "mx_fp")", "data_type"},
      {R"("quant_method": "fp8", "fmt": "e5m2")", "fmt"},
      {R"("quant_method": "fp8", "weight_block_size": [128])", "weight_block_size"},
      {R"("quant_method": "fp8", "weight_block_size": [0, 128])", "weight_block_size"},
      {R"("quant_method": "compressed-tensors", "format": "marlin-24")", "marlin-24"},
      {R"("quant_method": "compressed-tensors", "quantization_status": "frozen")", "frozen"},
      {R"("quant_method": "compressed-tensors", "transform_config": {"a": 1})", "transform_config"},
      {R"("quant_method": "compressed-tensors", "sparsity_config": {"format": "sparse-24-bitmask"})",
       "sparse-24-bitmask"},
      {R"("quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": {"g": {"targets": [],
          "weights": {"num_bits": 3, "type": "int"}}})",
       R"("quantization_config.config_groups.g.weights.num_bits" = "3")"},
      {R"("quant_method": "modelopt", "quant_algo": "NVFP4_AWQ")", "NVFP4_AWQ"},
      {R"("quant_method": "modelopt", "quant_algo": "INT8_SQ")", "INT8_SQ"},
  };
  for (const auto& [settings, shown] : cases) {
    config(settings);
    const Error error = refusal();
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << settings;
    EXPECT_THAT(error.what(), AllOf(HasSubstr("config.json"), HasSubstr(shown))) << settings;
    EXPECT_FALSE(error.advice().why.empty()) << settings;
    EXPECT_THAT(error.advice().next, HasSubstr("GGUF")) << settings;
  }
}

TEST_F(Refusals, OfTensorsThatChangeInputs) {
  config(R"("quant_method": "modelopt", "quant_algo": "FP8")");
  tensors({patterned_tensor("x.pre_quant_scale", "F32", {4})});
  EXPECT_THAT(refusal().what(), HasSubstr("x.pre_quant_scale"));
}

TEST_F(Refusals, OfTwoFilesThatContradictEachOther) {
  config(R"("quant_method": "modelopt", "quant_algo": "FP8")");
  directory.write("hf_quant_config.json", R"({"quantization": {"quant_algo": "NVFP4"}})");
  EXPECT_THAT(refusal().what(), AllOf(HasSubstr("config.json"), HasSubstr("\"FP8\""),
                                      HasSubstr("hf_quant_config.json"), HasSubstr("\"NVFP4\"")));
}

TEST_F(Refusals, OfPackedTensorsWithoutADescription) {
  directory.write("config.json", R"({"model_type": "llama"})");
  tensors({patterned_tensor("x.qweight", "I32", {4, 8})});
  EXPECT_THAT(refusal().what(), HasSubstr("\"x.qweight\" is quantized, but config.json has no"));
}

TEST_F(Refusals, OfPatternsThatTakeTooLongOrAreNotValid) {
  config(R"("quant_method": "gptq", "bits": 4, "dynamic": {"(a+)+$": {}})");
  tensors({patterned_tensor(std::string(64, 'a') + "b.qweight", "I32", {4, 8}),
           patterned_tensor(std::string(64, 'a') + "b.qzeros", "I32", {1, 1}),
           patterned_tensor(std::string(64, 'a') + "b.scales", "F16", {1, 8})});
  EXPECT_THAT(refusal().what(), HasSubstr("steps to match"));
  config(R"("quant_method": "gptq", "bits": 4, "dynamic": {"(": {}})");
  EXPECT_THAT(refusal().what(), HasSubstr("is not valid at byte 1"));
  config(R"("quant_method": "gptq", "bits": 4, "dynamic": {")" + std::string(500, 'a') + R"(": {}})");
  EXPECT_EQ(refusal().kind(), ErrorKind::corrupt);  // the limit of a name in config.json
}

bool fits(QuantizationConfig::Rule::Match match, std::string text, std::string_view module) {
  return QuantizationConfig::Rule{.match = match, .text = std::move(text), .pattern = {}, .scheme = {}}
      .matches(module);
}

TEST(ModuleRules, CompareWholeComponents) {
  using Match = QuantizationConfig::Rule::Match;
  EXPECT_TRUE(fits(Match::components, "mlp.gate", "model.layers.0.mlp.gate"));
  EXPECT_TRUE(fits(Match::components, "lm_head", "lm_head"));
  EXPECT_FALSE(fits(Match::components, "gate", "model.layers.0.mlp.gate_proj"));
  EXPECT_FALSE(fits(Match::components, "layers.1", "model.layers.10.mlp"));
}

TEST(ModuleRules, ReadWildcards) {
  using Match = QuantizationConfig::Rule::Match;
  EXPECT_TRUE(fits(Match::wildcard, "model.layers.0*", "model.layers.0.mlp"));
  EXPECT_TRUE(fits(Match::wildcard, "*.gate", "model.layers.0.mlp.gate"));
  EXPECT_FALSE(fits(Match::wildcard, "*.gate", "model.layers.0.mlp.gate_proj"));
  EXPECT_TRUE(fits(Match::wildcard, "a?c*", "abc"));
  EXPECT_FALSE(fits(Match::wildcard, "a*b*c", "acb"));
}

}  // namespace
}  // namespace inferno
