// Checkpoints quantized as people publish them, on a device: quantized_test.cpp has the CPU.
#include <gtest/gtest.h>

#include <iostream>
#include <variant>

#include "checkpoint/open_checkpoint.h"
#include "golden/agreement.h"
#include "model/load.h"
#include "model/runner.h"
#include "support/golden.h"
#include "support/model_backend.h"
#include "support/paths.h"
#include "support/published.h"

namespace inferno::testing {
namespace {

class Published : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const auto reference = shared_reference();
    if (!reference) GTEST_SKIP() << "no ../shared/reference";
    path = *reference / "quantized" / GetParam();
  }
  std::filesystem::path golden() const { return path / "golden.safetensors"; }

  std::filesystem::path path;
};

TEST_P(Published, AgreesWithTheReference) {
  expect_agreement({GetParam(), path, golden(), model_backend().quantized_weights});
}

TEST_P(Published, AgreesWithTheReferenceOfARoundedCache) {
  const auto checkpoint = open_checkpoint(path);
  const ModelSpec spec = describe_model(*checkpoint).spec;
  if (model_backend().misrouted > 0.0 && std::holds_alternative<MoeMlp>(spec.blocks.front().mlp)) {
    GTEST_SKIP() << "rounded activations may send a token to another expert";
  }
  int compared = 0;
  for (const GoldenCase& one : read_golden(golden())) {
    for (const auto& [type, logits] : one.cached_logits) {
      SCOPED_TRACE(one.name + " with " + type);
      const auto tokens = static_cast<int>(one.ids.size());
      const auto backend = model_backend().make(2);
      LoadedModel model = load_model(*checkpoint, *backend,
                                     {.max_tokens = 64,
                                      .max_logit_rows = one.rows,
                                      .context = tokens + 1,
                                      .cache = parse_cache_choice(type == "q8_0" ? "q8_0" : "fp8", "test")});
      Runner at_once(*model.decoder, *backend, tokens + 1), single(*model.decoder, *backend, tokens + 1);
      const std::vector<float> found = at_once.feed(one.ids, one.rows);
      const double distance = relative_error(found, logits);
      const double limit = type == "q8_0" ? model_backend().rounded_cache : model_backend().fp8_cache;
      EXPECT_LE(distance, limit);
      std::vector<float> last;
      for (const TokenId token : one.ids) last = single.feed({&token, 1}, 1);
      const auto vocab = static_cast<std::ptrdiff_t>(last.size());
      const double step_by_step = relative_error(last, {logits.end() - vocab, logits.end()});
      EXPECT_LE(step_by_step, 2.0 * limit);
      std::cout << GetParam() << " " << one.name << ", cache " << type << ": distance " << distance
                << ", of the last position token by token " << step_by_step << '\n';
      ++compared;
    }
  }
  if (compared == 0) GTEST_SKIP() << "no reference with a rounded cache";
}

INSTANTIATE_TEST_SUITE_P(Quantized, Published, ::testing::ValuesIn(published_quantizations()),
                         [](const auto& model) { return model.param; });

}  // namespace
}  // namespace inferno::testing
