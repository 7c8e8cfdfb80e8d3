#include "base/sizes.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(Sizes, ArePrintedInPowersOfAThousand) {
  EXPECT_EQ(human_size(0), "0 B");
  EXPECT_EQ(human_size(999), "999 B");
  EXPECT_EQ(human_size(1000), "1.0 kB");
  EXPECT_EQ(human_size(13'761'264'768), "13.8 GB");
  EXPECT_EQ(human_size(2'500'000'000'000), "2.5 TB");
}

TEST(Sizes, RoundUpToTheNextUnitInsteadOfPrintingAThousand) {
  EXPECT_EQ(human_size(999'949), "999.9 kB");
  EXPECT_EQ(human_size(999'999'999), "1.0 GB");
}

TEST(Sizes, CountsAreShortenedFromAMillion) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999'999), "999999");
  EXPECT_EQ(human_count(12'650'000), "12.65 M");
  EXPECT_EQ(human_count(999'994'999), "999.99 M");
  EXPECT_EQ(human_count(999'999'999), "1.00 B");
  EXPECT_EQ(human_count(20'914'757'184), "20.91 B");
}

TEST(Sizes, CountsHaveAPlural) {
  EXPECT_EQ(counted(0, "file"), "0 files");
  EXPECT_EQ(counted(1, "file"), "1 file");
  EXPECT_EQ(counted(2, "file"), "2 files");
}

TEST(Sizes, GroupDigits) {
  EXPECT_EQ(grouped(7), "7");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1214), "1,214");
  EXPECT_EQ(grouped(131'072'000), "131,072,000");
}

TEST(Sizes, AreReadWithUnits) {
  EXPECT_EQ(parse_size("0"), 0u);
  EXPECT_EQ(parse_size("20000000"), 20'000'000u);
  EXPECT_EQ(parse_size("4800M"), 4800ull << 20);
  EXPECT_EQ(parse_size("1.5G"), 3ull << 29);
  EXPECT_EQ(parse_size("2GiB"), 2ull << 30);
  EXPECT_EQ(parse_size("8g"), 8'000'000'000u);
  EXPECT_EQ(parse_size("8GB"), 8'000'000'000u);
  EXPECT_EQ(parse_size("7B"), 7u);
  for (const char* wrong : {"", "G", "-1", "1X", "1.5", "1GG", "1e30T", "8 G", "nan", "inf"}) {
    EXPECT_EQ(parse_size(wrong), std::nullopt) << wrong;
  }
}

}  // namespace
}  // namespace inferno
