// A backend with the memory of one test: uploads, outputs filled with poison, guard bytes after each matrix.
#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "backend/backend.h"
#include "support/host_matrix.h"

namespace inferno {

// A weight in two forms: packed by the backend, and as numbers for the reference.
struct TestWeight {
  Weight packed;
  std::vector<HostMatrix> values;  // one for each of packed.count
};

class Device {
 public:
  explicit Device(std::unique_ptr<Backend> backend) : backend_(std::move(backend)) {}

  Backend& backend() { return *backend_; }
  DType activations() const { return backend_->activation_type(); }

  // Rounds `values` to `type` first, so that the reference computes with the same numbers.
  Matrix upload(HostMatrix& values, DType type);
  Matrix upload(std::span<const std::int32_t> values, int cols = 1);
  // Every element is NaN until written.
  Matrix poisoned(int rows, int cols, DType type);

  // Fails the test if something was written past the end of the matrix.
  std::vector<std::byte> bytes(Matrix matrix);
  HostMatrix download(Matrix matrix);

  // Random, in a range suitable for a weight of the format. is_reordered: each matrix has an order of
  // columns, and its values are in the order of the input.
  const TestWeight& weight(const WeightShape& shape, std::uint64_t seed, bool is_reordered = false);

 private:
  Matrix reserve(int rows, int cols, DType type, std::vector<std::byte> content);

  std::unique_ptr<Backend> backend_;
  std::deque<Buffer> memory_;
  std::deque<TestWeight> weights_;
};

}  // namespace inferno
