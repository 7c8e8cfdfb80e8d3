#include "cli/download/display.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/characters.h"

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
  const auto lines = download_lines(half_of("model.safetensors"), {100e6, 0}, 100e6, {.columns = 200});
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("model.safetensors"));
  EXPECT_THAT(lines[0], HasSubstr("50 %"));
  EXPECT_THAT(lines[0], HasSubstr("100.0 MB/s  10 s"));
  EXPECT_THAT(lines[1], HasSubstr("1/2 files"));
  EXPECT_THAT(lines[1], HasSubstr("1.0 GB of 2.0 GB  100.0 MB/s  10 s left"));
}

TEST(DownloadDisplay, LetsNoNameDriveTheTerminalOrWrapALine) {
  const auto lines = download_lines(half_of("\x1b[2Jmodel" + std::string(300, 'x')), {}, 0, {.columns = 60});
  EXPECT_THAT(lines[0], Not(HasSubstr("\x1b")));
  EXPECT_LT(lines[0].size(), 60U + 2 * 20);  // a cell of the bar has three bytes
}

// Every figure that is shown is whole, at any width.
TEST(DownloadDisplay, FitsTheScreenWithoutCuttingAFigure) {
  hub::DownloadProgress progress = half_of("model-00001-of-00002.safetensors");
  progress.files[1].state = hub::FileState::elsewhere;
  for (int columns = 40; columns <= 200; ++columns) {
    for (const double rate : {0.0, 14.8e6, 1e3}) {
      const auto lines = download_lines(progress, {rate, 0}, rate, {.columns = columns});
      std::string all;
      for (const std::string& line : lines) {
        EXPECT_LT(inferno::columns(line), columns) << line;
        all += line + "\n";
      }
      EXPECT_THAT(lines[0], HasSubstr(" 50 %")) << columns;
      EXPECT_THAT(all, HasSubstr("1.0 GB of 2.0 GB")) << columns;
      if (rate > 1e6) {
        EXPECT_THAT(all, HasSubstr("14.8 MB/s  1 min 08 s left")) << columns;
      }
      EXPECT_THAT(lines[0], testing::ContainsRegex("safetensors |\\.\\.\\.")) << columns;
    }
  }
  EXPECT_THAT(download_lines(progress, {}, 0, {.columns = 100})[0], HasSubstr("█"));
  EXPECT_THAT(download_lines(progress, {}, 0, {.columns = 50})[0], Not(HasSubstr("█")));
  const auto ascii = download_lines(progress, {}, 0, {.columns = 100, .unicode = false});
  EXPECT_THAT(ascii[0], HasSubstr("####------"));
}

// As the terminal broke them: a line of 79 columns takes one row of 80, two of 50 and three of 30.
TEST(DownloadDisplay, GoesBackToItsFirstLineAlsoIfTheScreenIsNarrower) {
  const std::vector<std::string> lines = {std::string(79, 'x'), "short", "██" + std::string(38, ' ')};
  EXPECT_EQ(to_first_line(lines, 80), "\r\x1b[3A");
  EXPECT_EQ(to_first_line(lines, 50), "\r\x1b[4A");
  EXPECT_EQ(to_first_line(lines, 30), "\r\x1b[6A");
  EXPECT_EQ(to_first_line({}, 80), "");
}

TEST(DownloadDisplay, SaysWhatIsWaitedFor) {
  const hub::Pause pause = {.reason = "huggingface.co: asks to wait (status 429)",
                            .next_try = 2,
                            .tries = 8,
                            .left = std::chrono::milliseconds(4200)};
  const auto lines = download_lines(half_of("a"), {}, 0, {.columns = 80}, pause);
  EXPECT_EQ(lines.back(), " waiting 4 s, try 2 of 8: huggingface.co: asks to wait (status 429)");
  for (int width = 40; width <= 200; ++width) {
    const std::string line = download_lines(half_of("a"), {}, 0, {.columns = width}, pause).back();
    EXPECT_LT(line.size(), static_cast<std::size_t>(width));
    EXPECT_THAT(line, HasSubstr("waiting 4 s, try 2 of 8")) << width;
    EXPECT_TRUE(line.ends_with("(status 429)") || line.find("429") == std::string::npos) << line;
    EXPECT_EQ((lines.back() + " ").substr(0, line.size() + 1), line + " ") << "a word is cut: " << line;
  }
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
