// Quantized checkpoints as GGUF, and float checkpoints that are rounded while they are loaded.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "base/error.h"
#include "checkpoint/open_checkpoint.h"
#include "model/export/gguf_export.h"
#include "model/load.h"
#include "model/runner.h"
#include "support/caught_error.h"
#include "support/golden.h"
#include "support/paths.h"
#include "support/published.h"
#include "support/temporary_directory.h"
#include "tolerance.h"

namespace inferno::testing {
namespace {

namespace fs = std::filesystem;

struct Conversion {
  fs::path file;
  std::vector<std::string> notes;
};

Conversion convert(const fs::path& model, WeightFormat type, const fs::path& folder) {
  ThreadPool pool(2);
  const auto checkpoint = open_checkpoint(model);
  const GgufExport out = export_gguf(*checkpoint, {.type = type, .experts = {}}, pool);
  const fs::path file = folder / "model.gguf";
  write_gguf(file, out.file);
  return {file, out.notes};
}

std::vector<float> logits_of(const fs::path& model, std::optional<WeightFormat> quantize = {}) {
  const auto checkpoint = open_checkpoint(model);
  const auto backend = make_cpu_backend(2);
  const int vocab = describe_model(*checkpoint).spec.vocab;
  LoadedModel loaded =
      load_model(*checkpoint, *backend, {.max_tokens = 32, .max_logit_rows = 8, .context = 40}, quantize);
  Runner runner(*loaded.decoder, *backend, 40);
  std::vector<TokenId> tokens;
  for (int i = 0; i < 37; ++i) tokens.push_back((i * 71 + 5) % vocab);
  return runner.feed(tokens, 8);
}

class PublishedAsGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(PublishedAsGguf, HasTheSameWeightsAsFloats) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const fs::path model = *reference / "quantized" / GetParam();
  const TemporaryDirectory scratch;
  const Conversion made = convert(model, WeightFormat::f32, scratch.path());
  EXPECT_LE(relative_error(logits_of(made.file), logits_of(model)), published_weight_logits);
}
INSTANTIATE_TEST_SUITE_P(Convert, PublishedAsGguf, ::testing::ValuesIn(published_quantizations()),
                         [](const auto& model) { return model.param; });

bool says(const std::vector<std::string>& notes, std::string_view text) {
  return std::ranges::any_of(notes,
                             [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

TEST(QuantizedAsGguf, IsTheSameToTheBitWhereGgufHasTheType) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  for (const auto& [name, type, floats] : {std::tuple{"gptq_int4_g128", "q4_0", WeightFormat::f16},
                                           {"gptq_int4_column", "q4_0", WeightFormat::f16},
                                           {"gptq_int8_g32_head", "q8_0", WeightFormat::f16},
                                           {"ct_mxfp4", "mxfp4", WeightFormat::bf16}}) {
    SCOPED_TRACE(name);
    const fs::path model = *reference / "quantized" / name;
    const TemporaryDirectory scratch;
    const Conversion made = convert(model, floats, scratch.path());
    EXPECT_TRUE(says(made.notes, std::string("kept bit for bit as ") + type));
    EXPECT_EQ(logits_of(made.file), logits_of(model));
  }
}

TEST(QuantizedAsGguf, SaysWhatIsRounded) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const TemporaryDirectory scratch;
  const Conversion made =
      convert(*reference / "quantized" / "awq_int4_g128", WeightFormat::q8_0, scratch.path());
  EXPECT_TRUE(says(made.notes, "cannot say exactly (int4_128), rounded to q8_0"));
}

class Rounded : public ::testing::TestWithParam<std::tuple<std::string, WeightFormat>> {};

TEST_P(Rounded, AtLoadGivesTheBitsOfConvertThenLoad) {
  const auto& [name, type] = GetParam();
  const fs::path model = data_folder() / "models" / name;
  const TemporaryDirectory scratch;
  const Conversion made = convert(model, type, scratch.path());
  EXPECT_EQ(logits_of(model, type), logits_of(made.file));
}
INSTANTIATE_TEST_SUITE_P(Convert, Rounded,
                         ::testing::Combine(::testing::Values("gpt_oss", "mistral", "mixtral", "phi", "phi3",
                                                              "qwen3"),
                                            ::testing::Values(WeightFormat::q8_0, WeightFormat::q6_k,
                                                              WeightFormat::q4_k, WeightFormat::q4_0)),
                         [](const auto& one) {
                           return std::get<0>(one.param) + "_" + std::string(name_of(std::get<1>(one.param)));
                         });

TEST(RoundedAtLoad, RefusesWeightsThatAreQuantized) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  for (const char* name : {"quantized/awq_int4_g128", "gguf/llama-Q4_0.gguf"}) {
    const Error error = caught_error([&] { logits_of(*reference / name, WeightFormat::q8_0); });
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    EXPECT_NE(std::string(error.what()).find("already"), std::string::npos) << error.what();
  }
}

TEST(RoundedAtLoad, KnowsFourTypes) {
  EXPECT_EQ(parse_quantize(""), std::nullopt);
  EXPECT_EQ(parse_quantize("q4_k"), WeightFormat::q4_k);
  EXPECT_EQ(caught_error([] { parse_quantize("bf16"); }).kind(), ErrorKind::invalid_request);
}

}  // namespace
}  // namespace inferno::testing
