#include "service/loading/load_progress.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "checkpoint/open_checkpoint.h"
#include "support/source_dir.h"

namespace inferno {
namespace {

TEST(LoadProgress, CountsWhatIsReadOfWhatWasAskedFor) {
  std::uint64_t done = 0, total = 0;
  const auto checkpoint = with_progress(open_checkpoint(std::string(INFERNO_TEST_DATA) + "/models/qwen3"),
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

}  // namespace
}  // namespace inferno
