// Compares models converted to GGUF with their originals.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "checkpoint/open_checkpoint.h"
#include "golden/agreement.h"
#include "model/export/gguf_export.h"
#include "model/load.h"
#include "model/runner.h"
#include "support/caught_error.h"
#include "support/golden.h"
#include "support/paths.h"
#include "support/temporary_directory.h"
#include "tolerance.h"

namespace inferno::testing {
namespace {

namespace fs = std::filesystem;

// "models/llama" in tests/data, "shared/llama" in the reference folder.
fs::path folder_of(const std::string& name) {
  if (!name.starts_with("shared/")) return data_folder() / name;
  return *shared_reference() / "models" / name.substr(7);
}

std::vector<std::string> all_models() {
  std::vector<std::string> names;
  for (const std::string folder : {"models", "variants"}) {
    for (const std::string& name : names_in(data_folder() / folder)) names.push_back(folder + "/" + name);
  }
  if (const auto reference = shared_reference()) {
    const std::vector<std::string> here = names_in(data_folder() / "models");
    for (const std::string& name : names_in(*reference / "models")) {
      if (std::ranges::find(here, name) == here.end()) names.push_back("shared/" + name);
    }
  }
  return names;
}

// Properties that GGUF has no keys for: scales of GPT-2, windows and experts on some layers only.
const std::set<std::string> refused = {"variants/gpt2_inverse_layers", "variants/gpt2_unscaled",
                                       "variants/gpt_oss_full",        "variants/qwen2_upper_window",
                                       "variants/qwen3_moe_mixed",     "variants/qwen3_moe_step"};

std::vector<std::string> convertible_models() {
  std::vector<std::string> names = all_models();
  std::erase_if(names, [](const std::string& name) { return refused.contains(name); });
  return names;
}

std::string test_name(const ::testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace_if(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

fs::path convert(const fs::path& model, const ExportOptions& options, const fs::path& folder) {
  ThreadPool pool(2);
  const auto checkpoint = open_checkpoint(model);
  const GgufExport out = export_gguf(*checkpoint, options, pool);
  const fs::path file = folder / "model.gguf";
  write_gguf(file, out.file);
  return file;
}

std::vector<float> logits_of(const fs::path& model) {
  const auto checkpoint = open_checkpoint(model);
  const auto backend = make_cpu_backend(2);
  const int vocab = describe_model(*checkpoint).spec.vocab;
  LoadedModel loaded =
      load_model(*checkpoint, *backend, {.max_tokens = 32, .max_logit_rows = 8, .context = 40});
  Runner runner(*loaded.decoder, *backend, 40);
  std::vector<TokenId> tokens;
  for (int i = 0; i < 37; ++i) tokens.push_back((i * 71 + 5) % vocab);
  return runner.feed(tokens, 8);
}

// The type in which a checkpoint's floats are kept as they are.
WeightFormat own_type(const fs::path& model) {
  const auto checkpoint = open_checkpoint(model);
  for (const std::string& name : checkpoint->names()) {
    const auto tensor = checkpoint->find(name);
    if (tensor && tensor->shape.size() == 2) return tensor->format;
  }
  return WeightFormat::f32;
}

class Converted : public ::testing::TestWithParam<std::string> {};

TEST_P(Converted, GivesTheSameLogitsInItsOwnType) {
  const fs::path model = folder_of(GetParam());
  const TemporaryDirectory scratch;
  const fs::path file = convert(model, {.type = own_type(model), .experts = {}}, scratch.path());
  const std::vector<float> original = logits_of(model), copy = logits_of(file);
  const bool stores_factors = open_checkpoint(file)->find("rope_freqs.weight").has_value();
  if (!stores_factors) {
    EXPECT_EQ(copy, original);
  } else {  // the factors of the frequencies are rounded to floats
    EXPECT_LE(relative_error(copy, original), 1e-5);
  }
}

TEST_P(Converted, AgreesWithTheReferenceInItsOwnType) {
  const fs::path model = folder_of(GetParam());
  const TemporaryDirectory scratch;
  const fs::path file = convert(model, {.type = own_type(model), .experts = {}}, scratch.path());
  expect_agreement({GetParam() + " as GGUF", file, model / "golden.safetensors", float_weight_logits});
}
INSTANTIATE_TEST_SUITE_P(Convert, Converted, ::testing::ValuesIn(convertible_models()), test_name);

class Refused : public ::testing::TestWithParam<std::string> {};

TEST_P(Refused, IsAnErrorThatSaysWhatIsMissing) {
  ThreadPool pool(1);
  const auto checkpoint = open_checkpoint(folder_of(GetParam()));
  const Error error = caught_error([&] { export_gguf(*checkpoint, {}, pool); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_NE(error.advice().why.find("of layer"), std::string::npos) << error.what() << error.advice().why;
}
INSTANTIATE_TEST_SUITE_P(Convert, Refused, ::testing::ValuesIn(refused), test_name);

// The relative error of the logits. Random weights are the worst case: an expert chosen by a hair's breadth
// changes with the rounding of the router's input.
struct Bound {
  WeightFormat type;
  double error;
};

class Type : public ::testing::TestWithParam<Bound> {};

TEST_P(Type, KeepsTheLogitsOfEveryFamilyNear) {
  for (const std::string& name : names_in(data_folder() / "models")) {
    const fs::path model = data_folder() / "models" / name;
    const TemporaryDirectory scratch;
    const fs::path file = convert(model, {.type = GetParam().type, .experts = {}}, scratch.path());
    const double error = relative_error(logits_of(file), logits_of(model));
    EXPECT_LE(error, GetParam().error) << name;
    RecordProperty(name, std::to_string(error));
  }
}
INSTANTIATE_TEST_SUITE_P(Convert, Type,
                         ::testing::Values(Bound{WeightFormat::f32, 1e-5}, Bound{WeightFormat::f16, 2e-3},
                                           Bound{WeightFormat::bf16, 1e-2}, Bound{WeightFormat::q8_0, 0.1},
                                           Bound{WeightFormat::q4_0, 0.8}, Bound{WeightFormat::q4_k, 0.6},
                                           Bound{WeightFormat::q6_k, 0.2}),
                         [](const auto& scene) { return std::string(name_of(scene.param.type)); });

TEST(ConvertedExperts, StayInMxfp4UnlessAskedOtherwise) {
  const fs::path model = data_folder() / "models" / "gpt_oss";
  const TemporaryDirectory scratch;
  const auto format_of = [&](const ExportOptions& options) {
    return open_checkpoint(convert(model, options, scratch.path()))
        ->find("blk.0.ffn_down_exps.weight")
        ->format;
  };
  EXPECT_EQ(format_of({.type = WeightFormat::q8_0, .experts = {}}), WeightFormat::mxfp4);
  EXPECT_EQ(format_of({.type = WeightFormat::q8_0, .experts = WeightFormat::mxfp4}), WeightFormat::mxfp4);
  EXPECT_EQ(format_of({.type = WeightFormat::q8_0, .experts = WeightFormat::bf16}), WeightFormat::bf16);
  // Four-bit values times powers of two: bf16 holds them exactly.
  EXPECT_EQ(
      logits_of(convert(model, {.type = WeightFormat::bf16, .experts = WeightFormat::f32}, scratch.path())),
      logits_of(convert(model, {.type = WeightFormat::bf16, .experts = WeightFormat::bf16}, scratch.path())));
}

TEST(ConvertedTensors, AreNamedAsLlamaCppNamesThem) {
  const TemporaryDirectory scratch;
  const auto ours = open_checkpoint(convert(data_folder() / "models" / "gpt_oss", {}, scratch.path()));
  const auto theirs = open_checkpoint(data_folder() / "gguf" / "gpt-oss-MXFP4_MOE.gguf");
  const auto of_layer = [](const Checkpoint& checkpoint, const std::string& prefix) {
    std::vector<std::string> names = checkpoint.names();
    std::erase_if(names, [&](const std::string& name) {
      return name.starts_with("blk.") && !name.starts_with(prefix);
    });
    return names;
  };
  EXPECT_EQ(of_layer(*ours, "blk.1."), of_layer(*theirs, "blk.1."));
}

}  // namespace
}  // namespace inferno::testing
