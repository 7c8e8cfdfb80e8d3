// Test support: a CPU backend with random matrices, and the comparison of a result with double precision.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/backend.h"
#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/operations.h"
#include "tensor/format.h"
#include "tensor/random_weight.h"

namespace inferno::cpu {

// The levels this machine can run.
inline std::vector<IsaLevel> levels_here() {
  std::vector<IsaLevel> levels;
  for (const IsaLevel level : all_levels) {
    if (can_run(level)) levels.push_back(level);
  }
  return levels;
}

inline std::string level_name(const testing::TestParamInfo<IsaLevel>& level) {
  return std::string(name_of(level.param));
}

class Scene {
 public:
  explicit Scene(IsaLevel level, int threads = 2) : backend(make_cpu_backend(threads, level)) {}

  std::unique_ptr<Backend> backend;

  Matrix zeros(int rows, int cols, DType type = DType::f32) {
    Matrix matrix = {nullptr, type, rows, cols};
    memory_.push_back(backend->allocate(matrix.bytes(), "test"));
    matrix.data = memory_.back().data();
    return matrix;
  }
  Matrix random(int rows, int cols, float spread = 1.0f) {
    const Matrix matrix = zeros(rows, cols);
    std::normal_distribution<float> normal(0.0f, spread);
    for (std::int64_t i = 0; i < std::int64_t{rows} * cols; ++i) floats(matrix)[i] = normal(bits_);
    return matrix;
  }
  Matrix indices(const std::vector<std::int32_t>& values, int rows) {
    const Matrix matrix = zeros(rows, static_cast<int>(values.size()) / std::max(rows, 1), DType::i32);
    std::memcpy(matrix.data, values.data(), matrix.bytes());
    return matrix;
  }
  // `order` is a Weight::column_order; values() are then in the order of the input.
  const Weight& random_weight(WeightFormat format, int rows, int cols, int count = 1,
                              const std::vector<std::int32_t>& order = {}) {
    const std::size_t elements =
        static_cast<std::size_t>(count) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    std::vector<std::byte> bytes(bytes_for(format, elements));
    fill_random(format, bytes, 1.0f, bits_());
    std::vector<float> decoded(elements);
    decode(format, bytes, decoded);
    weights_.push_back(backend->pack({format, count, rows, cols, bytes, order}));
    if (!order.empty()) {
      const std::vector<float> stored = decoded;
      const auto width = static_cast<std::size_t>(cols), matrix = static_cast<std::size_t>(rows) * width;
      for (std::size_t i = 0; i < elements; ++i) {
        const auto column = static_cast<std::size_t>(order[i / matrix * width + i % width]);
        decoded[i / width * width + column] = stored[i];
      }
    }
    decoded_.push_back(std::move(decoded));
    return weights_.back();
  }
  // What the weight's stored bytes mean, [count * rows, cols].
  const std::vector<float>& values(const Weight& weight) const {
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (&weights_[i] == &weight) return decoded_[i];
    }
    throw std::logic_error("a weight of another scene");
  }
  std::mt19937& bits() { return bits_; }

 private:
  std::deque<Buffer> memory_;
  std::deque<Weight> weights_;
  std::deque<std::vector<float>> decoded_;
  std::mt19937 bits_{7};
};

// A copy of the matrix's values.
inline std::vector<double> values_of(const Matrix& matrix) {
  const std::int64_t count = std::int64_t{matrix.rows} * matrix.cols;
  return {floats(matrix), floats(matrix) + count};
}

// |found - expected| / |expected|, both taken as one long vector.
inline double relative_error(const Matrix& found, const std::vector<double>& expected) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = static_cast<double>(floats(found)[i]) - expected[i];
    difference += d * d;
    size += expected[i] * expected[i];
  }
  return size == 0.0 ? std::sqrt(difference) : std::sqrt(difference / size);
}

}  // namespace inferno::cpu
