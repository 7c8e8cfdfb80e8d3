#include "cli/download/measured_rate.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

TEST(MeasuredRate, IsThatOfTheLastDownloadThatWasLongEnough) {
  const TemporaryDirectory home;
  const Environment environment({{"HOME", home.path()}}, std::nullopt);
  EXPECT_EQ(last_download_rate(environment), std::nullopt);
  keep_download_rate(environment, 1000, 1);
  EXPECT_EQ(last_download_rate(environment), std::nullopt);
  keep_download_rate(environment, 100'000'000, 2);
  EXPECT_EQ(last_download_rate(environment), 50e6);
  keep_download_rate(environment, 1000, 10);
  EXPECT_EQ(last_download_rate(environment), 50e6);
  const fs::path file = home.path() / ".local/state/inferno/download-rate";
  EXPECT_EQ(fs::status(file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(file.parent_path()).permissions(), fs::perms::owner_all);
  for (const char* wrong : {"", "fast", "1e300", "nan", "-5", "12 34"}) {
    std::ofstream(file) << wrong;
    EXPECT_EQ(last_download_rate(environment), std::nullopt) << wrong;
  }
}

TEST(MeasuredRate, NeedsNoHome) {
  const Environment homeless({}, std::nullopt);
  keep_download_rate(homeless, 100'000'000, 2);
  EXPECT_EQ(last_download_rate(homeless), std::nullopt);
}

TEST(MeasuredRate, SaysHowLongADownloadTakes) {
  EXPECT_EQ(size_and_time(5'000'000'000, 20e6), "5.0 GB, about 4 min 10 s");
  EXPECT_EQ(size_and_time(5'000, 20e6), "5.0 kB, about 1 s");
  EXPECT_EQ(size_and_time(5'000'000'000, std::nullopt), "5.0 GB");
}

}  // namespace
}  // namespace inferno
