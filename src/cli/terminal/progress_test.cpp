#include "cli/terminal/progress.h"

#include <gtest/gtest.h>

#include "cli/loading.h"

namespace inferno {
namespace {

TEST(LoadMeter, SaysHowFastItReads) {
  EXPECT_EQ(load_line(1'500'000'000, 3'000'000'000, 0.5), "50 % of 3.0 GB, 3.00 GB/s");
  EXPECT_EQ(load_line(0, 2048, 0.0), "0 % of 2.0 kB");
}

TEST(LoadReport, TellsWhatWasConvertedAndNamesEachKindOfTensorOnce) {
  const std::vector<Conversion> found = {{"model.layers.0.norm.weight", "bf16 to f32", "sums are float"},
                                         {"model.layers.1.norm.weight", "bf16 to f32", "sums are float"},
                                         {"model.layers.1.mlp.up.weight", "transposed", "it is stored so"},
                                         {"model.norm.weight", "bf16 to f32", "sums are float"}};
  EXPECT_EQ(conversion_lines(found),
            (std::vector<std::string>{
                "model.layers.*.norm.weight (2 tensors), model.norm.weight: bf16 to f32; sums are float",
                "model.layers.1.mlp.up.weight: transposed; it is stored so"}));
}

TEST(ProgressBar, ShowsHowMuchIsDone) {
  EXPECT_EQ(progress_line(5, 10, 123.4), "[###############               ] 5/10, 123 tokens/s");
  EXPECT_EQ(progress_line(0, 0, 0), "[##############################] 0/0, 0 tokens/s");
}

}  // namespace
}  // namespace inferno
