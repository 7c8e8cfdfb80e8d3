// The tables over WeightFormat agree with each other and with the sizes that the file formats document.
#include "tensor/format.h"

#include <gtest/gtest.h>

#include <set>

namespace inferno {
namespace {

TEST(WeightFormat, ListsEveryFormatOnceUnderItsName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < all_formats.size(); ++i) {
    EXPECT_EQ(static_cast<std::size_t>(all_formats[i]), i);
    EXPECT_EQ(format_named(name_of(all_formats[i])), all_formats[i]);
    names.insert(name_of(all_formats[i]));
  }
  EXPECT_EQ(names.size(), all_formats.size());
  EXPECT_FALSE(names.contains("unknown"));
  // The enumeration ends where the list does: the next value has no name.
  EXPECT_EQ(name_of(static_cast<WeightFormat>(all_formats.size())), "unknown");
}

TEST(WeightFormat, DoesNotInventAFormat) {
  EXPECT_EQ(format_named("q4_2"), std::nullopt);
  EXPECT_EQ(format_named(""), std::nullopt);
  EXPECT_EQ(format_named("Q4_0"), std::nullopt);
}

TEST(WeightFormat, CountsBytesOfWholeRows) {
  EXPECT_EQ(bytes_for(WeightFormat::f64, 3), 24u);
  EXPECT_EQ(bytes_for(WeightFormat::q8_0, 64), 68u);
  EXPECT_EQ(bytes_for(WeightFormat::mxfp4, 96), 51u);
  EXPECT_EQ(bytes_for(WeightFormat::q6_k, 512), 420u);
}

}  // namespace
}  // namespace inferno
