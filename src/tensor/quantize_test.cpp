#include "tensor/quantize.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tensor/format.h"

namespace inferno {
namespace {

constexpr std::array written = {WeightFormat::f32,  WeightFormat::f16,  WeightFormat::bf16,
                                WeightFormat::q8_0, WeightFormat::q4_0, WeightFormat::q4_k,
                                WeightFormat::q6_k};

std::vector<float> there_and_back(WeightFormat format, const std::vector<float>& values) {
  std::vector<std::byte> blocks(bytes_for(format, values.size()));
  quantize(format, values, blocks);
  std::vector<float> out(values.size());
  decode(format, blocks, out);
  return out;
}

std::vector<float> bell_curve(std::size_t count, float deviation) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal(0.0f, deviation);
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

double relative_error(const std::vector<float>& found, const std::vector<float>& expected) {
  double off = 0.0, all = 0.0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    off += std::pow(static_cast<double>(found[i]) - expected[i], 2);
    all += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(off / all);
}

TEST(Quantize, KnowsWhatItWrites) {
  for (const WeightFormat format : all_formats) {
    EXPECT_EQ(can_quantize(format), std::ranges::find(written, format) != written.end()) << name_of(format);
  }
}

TEST(Quantize, StaysNearBellCurves) {
  // A little above what the search reaches; without it q4_k misses its bound.
  const std::array<double, 7> bounds = {0.0, 3e-4, 2.4e-3, 6e-3, 0.1, 0.076, 0.019};
  for (const float deviation : {1e-2f, 1.0f, 300.0f}) {
    const std::vector<float> values = bell_curve(64 * 256, deviation);
    for (std::size_t i = 0; i < written.size(); ++i) {
      const double error = relative_error(there_and_back(written[i], values), values);
      EXPECT_LE(error, bounds[i]) << name_of(written[i]) << " at " << deviation;
      RecordProperty(std::string(name_of(written[i])), std::to_string(error));
    }
  }
}

TEST(Quantize, MissesNoValueByMoreThanAStepOfItsBlock) {
  const std::vector<float> values = bell_curve(256 * 16, 1.0f);
  const auto largest =
      std::abs(*std::ranges::max_element(values, [](float a, float b) { return std::abs(a) < std::abs(b); }));
  const auto expect_within = [&](WeightFormat format, float step) {
    const std::vector<float> found = there_and_back(format, values);
    for (std::size_t i = 0; i < values.size(); ++i) {
      ASSERT_LE(std::abs(found[i] - values[i]), step) << name_of(format) << ' ' << i;
    }
  };
  expect_within(WeightFormat::q8_0, largest / 127.0f);
  expect_within(WeightFormat::q4_0, largest / 8.0f);
  expect_within(WeightFormat::q4_k, 2.0f * largest / 15.0f);
  expect_within(WeightFormat::q6_k, largest / 31.0f);
}

TEST(Quantize, KeepsZerosExactly) {
  const std::vector<float> zeros(512, 0.0f);
  for (const WeightFormat format : written)
    EXPECT_EQ(there_and_back(format, zeros), zeros) << name_of(format);
}

TEST(Quantize, KeepsConstantsNearlyExactly) {
  for (const float constant : {0.75f, -0.75f}) {
    const std::vector<float> values(512, constant);
    for (const WeightFormat format : written) {
      EXPECT_LE(relative_error(there_and_back(format, values), values), 1e-3) << name_of(format);
    }
  }
}

TEST(Quantize, GivesAnOutlierToItsGroupAlone) {
  std::vector<float> values(512, 0.0f);
  values[100] = 1000.0f;
  values[300] = -1000.0f;
  for (const WeightFormat format : written) {
    EXPECT_LE(relative_error(there_and_back(format, values), values), 2e-3) << name_of(format);
  }
}

TEST(Quantize, HoldsTheLargestValuesThatItAccepts) {
  for (const WeightFormat format : written) {
    const float most = format == WeightFormat::bf16 || format == WeightFormat::f32 ? 3e38f : 65000.0f;
    std::vector<float> values(256, most);
    values[0] = -most;
    ASSERT_FALSE(first_unfit(format, values)) << name_of(format);
    for (const float value : there_and_back(format, values))
      EXPECT_TRUE(std::isfinite(value)) << name_of(format);
  }
}

TEST(Quantize, FindsValuesThatDoNotFit) {
  const float infinite = std::numeric_limits<float>::infinity();
  for (const WeightFormat format : written) {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), infinite, -infinite}) {
      std::vector<float> values(256, 1.0f);
      values[77] = bad;
      EXPECT_EQ(first_unfit(format, values), 77u) << name_of(format) << ' ' << bad;
    }
  }
  EXPECT_EQ(first_unfit(WeightFormat::f16, std::vector{1.0f, 70000.0f}), 1u);
  EXPECT_FALSE(first_unfit(WeightFormat::bf16, std::vector{1.0f, 70000.0f}));
}

}  // namespace
}  // namespace inferno
