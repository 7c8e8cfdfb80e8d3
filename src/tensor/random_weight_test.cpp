// Random weights must look like weights in every format, or a benchmark on them measures infinities.
#include "tensor/random_weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.h"
#include "tensor/format.h"

namespace inferno {
namespace {

struct Statistics {
  double mean, deviation;
};

std::vector<float> random_values(WeightFormat format, float deviation, std::uint64_t seed) {
  std::vector<float> values(256 * 256);
  std::vector<std::byte> bytes(bytes_for(format, values.size()));
  fill_random(format, bytes, deviation, seed);
  decode(format, bytes, values);
  return values;
}

Statistics statistics(const std::vector<float>& values) {
  double sum = 0.0, squares = 0.0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
  }
  const double mean = sum / static_cast<double>(values.size());
  return {mean, std::sqrt(squares / static_cast<double>(values.size()) - mean * mean)};
}

bool is_integer(WeightFormat format) {
  return block_elements(format) == 1 && name_of(format).starts_with("i");
}

TEST(RandomWeight, HasTheDeviationAskedForInEveryFormat) {
  for (const WeightFormat format : all_formats) {
    if (format == WeightFormat::u8) continue;  // has no negative values
    for (const float deviation : {0.02f, 1.0f, 30.0f}) {
      if (is_integer(format) && deviation < 1.0f) continue;
      SCOPED_TRACE(name_of(format));
      const std::vector<float> values = random_values(format, deviation, 7);
      for (const float value : values) ASSERT_TRUE(std::isfinite(value));
      const Statistics found = statistics(values);
      EXPECT_LT(std::abs(found.mean), 0.03 * deviation);
      EXPECT_NEAR(found.deviation, deviation, 0.08 * deviation);
    }
  }
}

TEST(RandomWeight, FillsUnsignedBytesWithMagnitudes) {
  const Statistics found = statistics(random_values(WeightFormat::u8, 30.0f, 7));
  EXPECT_NEAR(found.mean, 30.0 * std::sqrt(3.0) / 2.0, 1.0);
}

TEST(RandomWeight, DependsOnTheSeedAlone) {
  for (const WeightFormat format : all_formats) {
    SCOPED_TRACE(name_of(format));
    const std::vector<float> values = random_values(format, 2.0f, 1);
    EXPECT_EQ(values, random_values(format, 2.0f, 1));
    EXPECT_NE(values, random_values(format, 2.0f, 2));
  }
}

TEST(RandomWeight, DoesNotRepeatItself) {
  for (const WeightFormat format : all_formats) {
    SCOPED_TRACE(name_of(format));
    std::vector<std::byte> bytes(block_bytes(format) * 2048);
    fill_random(format, bytes, 2.0f, 3);
    const auto half = static_cast<std::ptrdiff_t>(bytes.size() / 2);
    EXPECT_FALSE(std::equal(bytes.begin(), bytes.begin() + half, bytes.begin() + half));
  }
}

TEST(RandomWeight, WritesEveryBlockAndNothingBeyond) {
  for (const WeightFormat format : all_formats) {
    SCOPED_TRACE(name_of(format));
    const std::size_t size = block_bytes(format) * 37;
    std::vector<std::byte> bytes(size + 1, std::byte{0x5A});
    fill_random(format, std::span(bytes).first(size), 2.0f, 5);
    EXPECT_EQ(bytes.back(), std::byte{0x5A});
    std::vector<std::byte> longer(2 * size);
    fill_random(format, longer, 2.0f, 5);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end() - 1, longer.begin()));
  }
}

TEST(RandomWeight, CanBeMadeInParts) {
  for (const WeightFormat format : all_formats) {
    SCOPED_TRACE(name_of(format));
    const std::size_t border = block_bytes(format) * random_chunk * 3;
    std::vector<std::byte> whole(border + block_bytes(format) * 41), parts(whole.size());
    fill_random(format, whole, 2.0f, 5);
    fill_random(format, std::span(parts).subspan(border), 2.0f, 5, random_chunk * 3);
    fill_random(format, std::span(parts).first(border), 2.0f, 5);
    EXPECT_TRUE(whole == parts);
  }
}

TEST(RandomWeight, RefusesPartialBlocksAndImpossibleDeviations) {
  std::vector<std::byte> bytes(35);
  EXPECT_THROW(fill_random(WeightFormat::q8_0, bytes, 1.0f, 0), Error);
  const std::span<std::byte> block = std::span(bytes).first(34);
  EXPECT_THROW(fill_random(WeightFormat::q8_0, block, 0.0f, 0), Error);
  EXPECT_THROW(fill_random(WeightFormat::q8_0, block, NAN, 0), Error);
}

}  // namespace
}  // namespace inferno
