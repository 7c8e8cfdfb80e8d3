// Compares the rounding error of our quantization with that of the reference GGUF files, on the same weights.
#include <gtest/gtest.h>

#include <cmath>

#include "checkpoint/open_checkpoint.h"
#include "model/tensor_plan.h"
#include "support/paths.h"
#include "tensor/format.h"
#include "tensor/quantize.h"

namespace inferno::testing {
namespace {

struct Theirs {
  std::string file;
  WeightFormat format;
};

double squared_error(const std::vector<float>& a, const std::vector<float>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum;
}

std::vector<float> rounded(WeightFormat format, const std::vector<float>& values) {
  std::vector<std::byte> blocks(bytes_for(format, values.size()));
  quantize(format, values, blocks);
  std::vector<float> out(values.size());
  decode(format, blocks, out);
  return out;
}

class Rounding : public ::testing::TestWithParam<Theirs> {};

TEST_P(Rounding, LosesNoMoreThanTheirs) {
  const auto reference = shared_reference();
  if (!reference) GTEST_SKIP() << "no ../shared/reference";
  const auto original = open_checkpoint(*reference / "gguf" / "llama-F16.gguf");
  const auto theirs = open_checkpoint(*reference / "gguf" / GetParam().file);
  double our_loss = 0.0, their_loss = 0.0, all = 0.0;
  for (const std::string& name : theirs->names()) {
    const auto tensor = theirs->find(name);
    if (tensor->format != GetParam().format) continue;
    const std::vector<float> values = read_floats(*original->find(name));
    our_loss += squared_error(rounded(tensor->format, values), values);
    their_loss += squared_error(read_floats(*tensor), values);
    all += squared_error(values, std::vector<float>(values.size()));
  }
  ASSERT_GT(their_loss, 0.0);
  RecordProperty("ours", std::to_string(std::sqrt(our_loss / all)));
  RecordProperty("theirs", std::to_string(std::sqrt(their_loss / all)));
  EXPECT_LE(our_loss, 1.02 * their_loss)
      << "relative: ours " << std::sqrt(our_loss / all) << ", theirs " << std::sqrt(their_loss / all);
}
INSTANTIATE_TEST_SUITE_P(Convert, Rounding,
                         ::testing::Values(Theirs{"llama-Q8_0.gguf", WeightFormat::q8_0},
                                           Theirs{"llama-Q4_0.gguf", WeightFormat::q4_0},
                                           Theirs{"llama-Q4_K_M.gguf", WeightFormat::q4_k},
                                           Theirs{"llama-Q6_K.gguf", WeightFormat::q6_k}),
                         [](const auto& scene) { return std::string(name_of(scene.param.format)); });

}  // namespace
}  // namespace inferno::testing
