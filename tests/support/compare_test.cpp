// A comparison that cannot fail would make every conformance test worthless.
#include "support/compare.h"

#include <gtest/gtest.h>

#include <cmath>

namespace inferno {
namespace {

HostMatrix row(std::vector<double> values) {
  HostMatrix matrix(1, static_cast<int>(values.size()));
  matrix.values = std::move(values);
  return matrix;
}

TEST(Compare, AcceptsWhatIsCloseEnough) {
  EXPECT_TRUE(agrees(row({3.0, 4.0}), row({3.0, 4.0}), 0.0));
  EXPECT_TRUE(agrees(row({3.0, 4.0004}), row({3.0, 4.0}), 1e-4));
}

TEST(Compare, RefusesWhatIsTooFar) {
  EXPECT_FALSE(agrees(row({3.0, 4.0006}), row({3.0, 4.0}), 1e-4));
  EXPECT_FALSE(agrees(row({0.0, 1e-9}), row({0.0, 0.0}), 1e-4));
}

TEST(Compare, RefusesWhatIsNotFinite) {
  EXPECT_FALSE(agrees(row({NAN}), row({NAN}), 1.0));
  EXPECT_FALSE(agrees(row({NAN}), row({1.0}), 1e9));
  EXPECT_FALSE(agrees(row({1.0}), row({NAN}), 1e9));
  EXPECT_FALSE(agrees(row({INFINITY}), row({INFINITY}), 1.0));
}

TEST(Compare, RefusesAnotherShape) {
  EXPECT_FALSE(agrees(row({1.0}), row({1.0, 1.0}), 1.0));
  EXPECT_FALSE(agrees(HostMatrix(2, 1), HostMatrix(1, 2), 1.0));
}

}  // namespace
}  // namespace inferno
