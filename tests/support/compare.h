// Compares a device's result with the reference: EXPECT_TRUE(agrees(found, expected, tolerance)).
#pragma once

#include <gtest/gtest.h>

#include "support/host_matrix.h"

namespace inferno {

// The relative L2 distance is at most `tolerance`. Values that are not finite, on either side, and different
// shapes fail. The message names the worst element.
testing::AssertionResult agrees(const HostMatrix& found, const HostMatrix& expected, double tolerance);

}  // namespace inferno
