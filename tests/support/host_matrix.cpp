#include "support/host_matrix.h"

#include <cmath>
#include <numeric>
#include <utility>

namespace inferno {

std::uint64_t Random::word() {
  state_ += 0x9E3779B97F4A7C15u;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int Random::below(int limit) {
  return static_cast<int>((word() >> 32) % static_cast<std::uint64_t>(limit));
}

double Random::uniform() {
  return std::ldexp(static_cast<double>(word() >> 11), -53);
}

// The sum of four uniform numbers is nearly normal; each has a variance of 1/12.
double Random::normal() {
  return (uniform() + uniform() + uniform() + uniform() - 2.0) * std::sqrt(3.0);
}

HostMatrix random_matrix(int rows, int cols, double deviation, std::uint64_t seed) {
  Random random(seed);
  HostMatrix matrix(rows, cols);
  for (double& value : matrix.values) value = deviation * random.normal();
  return matrix;
}

std::vector<std::int32_t> shuffled(int count, std::uint64_t seed) {
  Random random(seed);
  std::vector<std::int32_t> numbers(static_cast<std::size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  for (int i = count; i > 1; --i) {
    std::swap(numbers[static_cast<std::size_t>(i - 1)], numbers[static_cast<std::size_t>(random.below(i))]);
  }
  return numbers;
}

}  // namespace inferno
