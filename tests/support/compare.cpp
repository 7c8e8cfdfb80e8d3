#include "support/compare.h"

#include <cmath>

namespace inferno {

testing::AssertionResult agrees(const HostMatrix& found, const HostMatrix& expected, double tolerance) {
  if (found.rows != expected.rows || found.cols != expected.cols) {
    return testing::AssertionFailure() << "found [" << found.rows << ", " << found.cols << "], expected ["
                                       << expected.rows << ", " << expected.cols << "]";
  }
  double distance = 0.0, size = 0.0, worst = -1.0;
  std::size_t worst_at = 0;
  for (std::size_t i = 0; i < expected.values.size(); ++i) {
    if (!std::isfinite(found.values[i]) || !std::isfinite(expected.values[i])) {
      return testing::AssertionFailure()
             << "row " << i / static_cast<std::size_t>(expected.cols) << ", column "
             << i % static_cast<std::size_t>(expected.cols) << ": found " << found.values[i] << ", expected "
             << expected.values[i];
    }
    const double difference = found.values[i] - expected.values[i];
    distance += difference * difference;
    size += expected.values[i] * expected.values[i];
    if (std::abs(difference) > worst) {
      worst = std::abs(difference);
      worst_at = i;
    }
  }
  if (std::sqrt(distance) <= tolerance * std::sqrt(size)) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "relative L2 distance " << std::sqrt(distance / size) << ", at most "
                                     << tolerance << " allowed; worst at row "
                                     << worst_at / static_cast<std::size_t>(expected.cols) << ", column "
                                     << worst_at % static_cast<std::size_t>(expected.cols) << ": found "
                                     << found.values[worst_at] << ", expected " << expected.values[worst_at];
}

}  // namespace inferno
