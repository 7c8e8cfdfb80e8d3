// A model that does not fit is refused before a weight is read, with its footprint and what would fit.
#include <gtest/gtest.h>

#include <chrono>

#include "checkpoint/config_json.h"
#include "model/load.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "support/caught_error.h"
#include "support/forwarding_backend.h"
#include "support/model_backend.h"

namespace inferno::testing {
namespace {

constexpr std::size_t gibibyte = std::size_t{1} << 30;

// A backend that reports less free memory than it has.
class SmallDevice final : public ForwardingBackend {
 public:
  SmallDevice(std::unique_ptr<Backend> inner, std::size_t free)
      : ForwardingBackend(std::move(inner)), free_(free) {}
  DeviceInfo info() const override {
    DeviceInfo out = ForwardingBackend::info();
    out.free_bytes = free_;
    return out;
  }

 private:
  std::size_t free_;
};

std::unique_ptr<Checkpoint> llama_8b() {
  const Shape& shape = shape_named("llama-3.1-8b");
  return random_checkpoint(parse_config(shape.config, "llama-3.1-8b"), shape.type,
                           {.dense = WeightFormat::bf16});
}

Error refusal(Backend& backend, int context = 8192) {
  const auto checkpoint = llama_8b();
  const auto start = std::chrono::steady_clock::now();
  Error error = caught_error([&] {
    load_model(*checkpoint, backend, {.max_tokens = 512, .max_logit_rows = 16, .context = context});
  });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << "weights were read first";
  return error;
}

TEST(Footprint, SaysTheLongestContextOfTheModel) {
  const auto backend = model_backend().make(1);
  const Error error = refusal(*backend, 200'000);
  EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  EXPECT_STREQ(error.what(), "a context of 200000 tokens exceeds this model's maximum of 131072");
  EXPECT_EQ(error.advice().next, "ask for at most 131072, or leave the context out");
}

TEST(Footprint, RefusesWhatCannotFitAndSaysWhatWould) {
  SmallDevice backend(model_backend().make(1), 10 * gibibyte);
  const Error error = refusal(backend);
  EXPECT_EQ(error.kind(), ErrorKind::io);
  const std::string what = error.what();
  EXPECT_NE(what.find("10.7 GB of "), std::string::npos) << what;
  EXPECT_NE(what.find("weights              16.1 GB"), std::string::npos) << what;
  EXPECT_NE(what.find("one sequence of 8192 tokens"), std::string::npos) << what;
  EXPECT_NE(error.advice().why.find("q8_0"), std::string::npos) << error.advice().why;
  EXPECT_FALSE(error.advice().next.empty());
}

TEST(Footprint, NamesASmallerFormatForLessMemory) {
  SmallDevice six(model_backend().make(1), 6 * gibibyte), one(model_backend().make(1), gibibyte);
  EXPECT_NE(refusal(six).advice().why.find("q4_k"), std::string::npos);
  EXPECT_NE(refusal(one).advice().why.find("only weights of"), std::string::npos)
      << refusal(one).advice().why;
}

// Bytes of weights are summed from headers; the backend must not have been given any others.
TEST(Footprint, CountsTheWeightsThatABackendIsGiven) {
  class Counting final : public ForwardingBackend {
   public:
    using ForwardingBackend::ForwardingBackend;
    Buffer allocate(std::size_t bytes, std::string_view purpose) override {
      if (purpose == "small weights") given += bytes;
      return ForwardingBackend::allocate(bytes, purpose);
    }
    void load(std::span<Weight> to, std::span<const WeightSource> from) override {
      for (const WeightSource& source : from) given += source.bytes();
      ForwardingBackend::load(to, from);
    }
    std::uint64_t given = 0;
  };
  const auto checkpoint = random_checkpoint(
      parse_config(R"({"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 2, "head_dim": 16,
        "num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2,
        "vocab_size": 96, "rms_norm_eps": 1e-05, "rope_theta": 10000, "max_position_embeddings": 128,
        "sliding_window": 32, "swiglu_limit": 7.0, "attention_bias": true})",
                   "config.json"),
      "gpt_oss", {.dense = WeightFormat::bf16, .experts = WeightFormat::mxfp4});
  Counting backend(model_backend().make(1));
  const LoadedModel model = load_model(*checkpoint, backend, {.max_tokens = 8, .context = 64});
  EXPECT_EQ(model.report.weights.bytes, backend.given);
  EXPECT_DOUBLE_EQ(model.report.weights.active_share, 0.5);
}

}  // namespace
}  // namespace inferno::testing
