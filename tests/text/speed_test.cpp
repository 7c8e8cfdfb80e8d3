// Guaranteed speeds on one core, in optimized builds, in CPU time of the thread.
#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>

#include "support/source_dir.h"
#include "text/reference.h"
#include "text/tokenizer.h"

namespace inferno {
namespace {

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The best of a few runs, because other processes may use the caches.
template <typename Action>
double best_seconds(Action action) {
  double best = 1e9;
  for (int round = 0; round < 5; ++round) {
    const double start = thread_seconds();
    action();
    best = std::min(best, thread_seconds() - start);
  }
  return best;
}

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class Speed : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(folder_)) GTEST_SKIP() << "no reference data at " << folder_;
  }
  double megabytes_per_second(const std::string& text) const {
    const auto tokenizer = load_tokenizer(folder_ / "tokenizers" / "gpt-oss");
    const double rate =
        static_cast<double>(text.size()) / 1e6 / best_seconds([&] { tokenizer->encode(text); });
    std::printf("%.2f MB encoded at %.1f MB/s\n", static_cast<double>(text.size()) / 1e6, rate);
    return rate;
  }
  std::filesystem::path folder_ = reference_folder();
};

TEST_F(Speed, LoadsGptOssInThirdOfASecond) {
  const double seconds = best_seconds([&] { load_tokenizer(folder_ / "tokenizers" / "gpt-oss"); });
  std::printf("gpt-oss tokenizer loaded in %.0f ms\n", 1e3 * seconds);
  EXPECT_LE(seconds, 0.350);
}

TEST_F(Speed, EncodesTenMegabytesOfEnglishPerSecond) {
  EXPECT_GE(megabytes_per_second(contents(folder_ / "text" / "wikitext-2-test.txt")), 10.0);
}

TEST_F(Speed, EncodesSixMegabytesOfCodePerSecond) {
  std::string code;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(INFERNO_SOURCE_DIR "/src")) {
    if (entry.is_regular_file()) code += contents(entry.path());
  }
  EXPECT_GE(megabytes_per_second(code), 6.0);
}

}  // namespace
}  // namespace inferno
