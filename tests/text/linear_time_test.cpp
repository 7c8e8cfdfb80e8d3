// Texts on which naive tokenizers become quadratic. CPU time of the thread is measured, so that a busy
// machine does not fail the test.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <time.h>

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

double seconds_to_encode(const Tokenizer& tokenizer, std::string_view unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  const double start = thread_seconds();
  EXPECT_FALSE(tokenizer.encode_prompt(text).empty());
  return thread_seconds() - start;
}

std::vector<std::filesystem::path> subjects() {
  std::vector<std::filesystem::path> paths = {std::filesystem::path(INFERNO_TEST_DATA) / "tokenizer"};
  for (const char* name : {"gpt-oss", "qwen3", "phi-2", "phi-3"}) {
    const auto path = reference_folder() / "tokenizers" / name;
    if (std::filesystem::exists(path)) paths.push_back(path);
  }
  return paths;
}

TEST(LinearTime, TenTimesTheTextTakesAboutTenTimesAsLong) {
  for (const auto& path : subjects()) {
    const auto tokenizer = load_tokenizer(path);
    for (const std::string_view unit :
         {"a", "A", " ", "\n", "1", "!", "é", "日", "\xCC\x81\xCC\xA3", "<|", " \n", "abcdefghij"}) {
      // A quadratic step would take a hundred times as long; below a few milliseconds noise dominates.
      const double small = seconds_to_encode(*tokenizer, unit, 30'000);
      const double large = seconds_to_encode(*tokenizer, unit, 300'000);
      EXPECT_LT(large, 40 * small + 0.1)
          << fmt::format("{} with `{}`: {:.4f} s, then {:.4f} s", path.string(), unit, small, large);
    }
  }
}

TEST(LinearTime, AMegabyteWithoutASpaceTakesSeconds) {
  for (const auto& path : subjects()) {
    const auto tokenizer = load_tokenizer(path);
    EXPECT_LT(seconds_to_encode(*tokenizer, "abcdefghij", 1'000'000), 20.0) << path;
  }
}

}  // namespace
}  // namespace inferno
