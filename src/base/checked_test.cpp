#include "base/checked.h"

#include <gtest/gtest.h>

#include <array>

namespace inferno {
namespace {

constexpr std::uint64_t top = ~std::uint64_t{0};

TEST(Checked, AddsUntilTheSumNoLongerFits) {
  EXPECT_EQ(checked::add(top - 1, 1), top);
  EXPECT_EQ(checked::add(top, 1), std::nullopt);
}

TEST(Checked, MultipliesUntilTheProductNoLongerFits) {
  EXPECT_EQ(checked::mul(1ull << 32, (1ull << 32) - 1), (1ull << 32) * ((1ull << 32) - 1));
  EXPECT_EQ(checked::mul(1ull << 32, 1ull << 32), std::nullopt);
}

TEST(Checked, AlignsUpWithoutWrappingAround) {
  EXPECT_EQ(checked::align_up(0, 32), 0u);
  EXPECT_EQ(checked::align_up(33, 32), 64u);
  EXPECT_EQ(checked::align_up(top, 32), std::nullopt);
}

TEST(Checked, CountsTheElementsOfAShape) {
  EXPECT_EQ(checked::elements({}), 1u);
  EXPECT_EQ(checked::elements(std::array<std::int64_t, 3>{2, 3, 5}), 30u);
  EXPECT_EQ(checked::elements(std::array<std::int64_t, 2>{2, -3}), std::nullopt);
  EXPECT_EQ(checked::elements(std::array<std::int64_t, 2>{1ll << 40, 1ll << 40}), std::nullopt);
}

}  // namespace
}  // namespace inferno
