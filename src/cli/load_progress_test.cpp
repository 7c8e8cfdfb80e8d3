#include "cli/load_progress.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "checkpoint/open_checkpoint.h"
#include "cli/load_report.h"
#include "cli/terminal/progress_bar.h"

namespace inferno {
namespace {

TEST(LoadProgress, CountsWhatIsReadOfWhatWasAskedFor) {
  std::uint64_t done = 0, total = 0;
  const auto checkpoint = watched(open_checkpoint(std::string(INFERNO_TEST_DATA) + "/models/qwen3"),
                                  [&](std::uint64_t read, std::uint64_t all) {
                                    done = read;
                                    total = all;
                                  });
  const auto names = checkpoint->names();
  ASSERT_GE(names.size(), 2u);
  const StoredTensor first = *checkpoint->find(names[0]), second = *checkpoint->find(names[1]);
  checkpoint->find(names[1]);  // asked twice, counted once
  EXPECT_FALSE(checkpoint->find("no such tensor"));
  std::vector<std::byte> bytes(first.bytes);
  first.read(0, bytes);
  std::this_thread::sleep_for(std::chrono::milliseconds(110));
  first.read(0, std::span(bytes).first(1));
  EXPECT_EQ(total, first.bytes + second.bytes);
  EXPECT_EQ(done, std::min(first.bytes + 1, total));
}

TEST(LoadProgress, SaysHowFastItReads) {
  EXPECT_EQ(load_line(1'500'000'000, 3'000'000'000, 0.5), "50 % of 3.0 GB, 3.00 GB/s");
  EXPECT_EQ(load_line(0, 2048, 0.0), "0 % of 2.0 kB");
}

TEST(LoadProgress, TellsWhatWasConvertedAndNamesEachKindOfTensorOnce) {
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
