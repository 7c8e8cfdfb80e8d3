// A model that does not fit is refused before a byte of it is read, with the plan and what would fit.
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

class Smaller final : public ForwardingBackend {
 public:
  Smaller(std::unique_ptr<Backend> inner, std::size_t free)
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

Error refusal(Backend& backend) {
  const auto checkpoint = llama_8b();
  const auto start = std::chrono::steady_clock::now();
  Error error = caught_error(
      [&] { load_model(*checkpoint, backend, {.max_tokens = 512, .max_logit_rows = 16, .context = 8192}); });
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(2)) << "weights were read first";
  return error;
}

TEST(MemoryPlan, RefusesWhatCannotFitAndSaysWhatWould) {
  Smaller backend(model_backend().make(1), 10 * gibibyte);
  const Error error = refusal(backend);
  EXPECT_EQ(error.kind(), ErrorKind::io);
  const std::string what = error.what();
  EXPECT_NE(what.find("10.7 GB of "), std::string::npos) << what;
  EXPECT_NE(what.find("weights              16.1 GB"), std::string::npos) << what;
  EXPECT_NE(what.find("one sequence of 8192 tokens"), std::string::npos) << what;
  EXPECT_NE(error.advice().why.find("q8_0"), std::string::npos) << error.advice().why;
  EXPECT_FALSE(error.advice().next.empty());
}

TEST(MemoryPlan, NamesASmallerFormatForLessMemory) {
  Smaller six(model_backend().make(1), 6 * gibibyte), one(model_backend().make(1), gibibyte);
  EXPECT_NE(refusal(six).advice().why.find("q4_k"), std::string::npos);
  EXPECT_NE(refusal(one).advice().why.find("only weights of"), std::string::npos)
      << refusal(one).advice().why;
}

}  // namespace
}  // namespace inferno::testing
