// Memory that operations reuse from call to call instead of allocating.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "backend/backend.h"
#include "tensor/matrix.h"

namespace inferno::cpu {

class Scratch {
 public:
  explicit Scratch(int workers);

  // At least `count` floats, aligned to 64 bytes, that only `worker` touches. What they hold is whatever was
  // left there.
  float* own(int worker, std::size_t count);

  // Memory for everyone, one piece for each use. A piece keeps its contents until its use comes again.
  enum class Use { tiles, router, wide, hidden, mixed, partial_attention };
  float* shared(Use use, std::size_t count);
  Matrix shared(Use use, std::int32_t rows, std::int32_t cols);

 private:
  std::vector<Buffer> of_worker_;
  std::array<Buffer, 6> shared_;
};

}  // namespace inferno::cpu
