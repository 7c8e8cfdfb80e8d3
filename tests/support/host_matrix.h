// A matrix of doubles in host memory, for reference computations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace inferno {

struct HostMatrix {
  int rows = 0;
  int cols = 0;
  std::vector<double> values;

  HostMatrix() = default;
  HostMatrix(int row_count, int col_count)
      : rows(row_count),
        cols(col_count),
        values(static_cast<std::size_t>(row_count) * static_cast<std::size_t>(col_count)) {}

  std::span<double> row(int r) {
    return std::span(values).subspan(offset(r), static_cast<std::size_t>(cols));
  }
  std::span<const double> row(int r) const {
    return std::span(values).subspan(offset(r), static_cast<std::size_t>(cols));
  }

  // Appends the rows of a matrix with the same number of columns.
  void append(const HostMatrix& more) {
    rows += more.rows;
    values.insert(values.end(), more.values.begin(), more.values.end());
  }

 private:
  std::size_t offset(int r) const { return static_cast<std::size_t>(r) * static_cast<std::size_t>(cols); }
};

// A stream of random numbers that is the same on every machine.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t word();
  int below(int limit);  // 0 to limit - 1
  double uniform();      // 0 to 1
  double normal();       // approximately: mean 0, standard deviation 1, at most 3.5

 private:
  std::uint64_t state_;
};

HostMatrix random_matrix(int rows, int cols, double deviation, std::uint64_t seed);

// The numbers 0 to count - 1 in random order.
std::vector<std::int32_t> shuffled(int count, std::uint64_t seed);

}  // namespace inferno
