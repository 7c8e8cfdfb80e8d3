#include "cli/download/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace inferno {
namespace {

using testing::HasSubstr;
using testing::Not;

hub::DownloadProgress half_of(const std::string& path) {
  hub::DownloadProgress progress;
  progress.files = {
      {.path = path,
       .size = 2'000'000'000,
       .have = 1'000'000'000,
       .fetched = 0,
       .state = hub::FileState::fetching},
      {.path = "config.json", .size = 10, .have = 10, .fetched = 0, .state = hub::FileState::finished}};
  progress.size = 2'000'000'010;
  progress.have = 1'000'000'010;
  progress.finished = 1;
  return progress;
}

TEST(DownloadDisplay, ShowsFilesAtWorkAndTheTotal) {
  const auto lines = download_lines(half_of("model.safetensors"), {100e6, 0}, 100e6, 200, 8);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("model.safetensors"));
  EXPECT_THAT(lines[0], HasSubstr("50 %"));
  EXPECT_THAT(lines[0], HasSubstr("100.0 MB/s  10 s"));
  EXPECT_THAT(lines[1], HasSubstr("1/2 files"));
  EXPECT_THAT(lines[1], HasSubstr("1.0 GB of 2.0 GB  100.0 MB/s  10 s left"));
}

TEST(DownloadDisplay, LetsNoNameDriveTheTerminalOrWrapALine) {
  const auto lines = download_lines(half_of("\x1b[2Jmodel" + std::string(300, 'x')), {}, 0, 60, 8);
  EXPECT_THAT(lines[0], Not(HasSubstr("\x1b")));
  EXPECT_LT(lines[0].size(), 60U + 2 * 20);  // a cell of the bar has three bytes
}

TEST(DownloadDisplay, MeasuresTheLastSeconds) {
  Rate rate;
  const Rate::Time begin{};
  EXPECT_EQ(rate.per_second(), 0);
  for (int second = 0; second <= 20; ++second) {
    rate.add(begin + std::chrono::seconds(second),
             static_cast<std::uint64_t>(second <= 10 ? 1000 * second : 10'000 + 10 * (second - 10)));
  }
  EXPECT_NEAR(rate.per_second(), 10, 0.1);
}

TEST(DownloadDisplay, WritesDurationsInTwoUnits) {
  EXPECT_EQ(short_duration(33), "33 s");
  EXPECT_EQ(short_duration(250), "4 min 10 s");
  EXPECT_EQ(short_duration(7500), "2 h 05 min");
}

}  // namespace
}  // namespace inferno
