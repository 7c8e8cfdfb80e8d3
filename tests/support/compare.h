// Whether a device's result is the reference's: EXPECT_TRUE(agrees(found, expected, tolerance)).
#pragma once

#include <gtest/gtest.h>

#include "support/host_matrix.h"

namespace inferno {

// The relative L2 distance is at most `tolerance`. Anything that is not finite, on either side, fails; so do
// shapes that differ. The message names the worst element.
testing::AssertionResult agrees(const HostMatrix& found, const HostMatrix& expected, double tolerance);

}  // namespace inferno
