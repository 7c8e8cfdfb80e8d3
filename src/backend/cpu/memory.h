// Host memory for weights, cache and activations, and for the intermediate results of operations.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <string_view>
#include <vector>

#include "backend/backend.h"
#include "base/system_memory.h"
#include "tensor/matrix.h"

namespace inferno::cpu {

// Zeroed and aligned to 64 bytes. Large buffers use huge pages, which doubles the bandwidth that two threads
// reach. Error{io} naming `purpose` if system_memory(roots) has not enough.
Buffer allocate(std::size_t bytes, std::string_view purpose, const SystemRoots& roots = {});

// allocate() for buffers that are read together and live equally long, such as the weights of a model: small
// ones share huge pages too.
class Arena {
 public:
  explicit Arena(SystemRoots roots = {}) : roots_(std::move(roots)) {}
  Buffer allocate(std::size_t bytes, std::string_view purpose);

 private:
  SystemRoots roots_;
  std::shared_ptr<Buffer> chunk_;  // shared with every buffer inside it
  std::size_t used_ = 0;
};

// Memory that operations reuse from call to call instead of allocating.
class Scratch {
 public:
  explicit Scratch(int workers);

  // At least `count` floats, aligned to 64 bytes, for this worker alone. Their contents are undefined.
  float* own(int worker, std::size_t count);

  // Memory that all workers share, one piece for each use. A piece keeps its contents until the next request
  // for the same use.
  enum class Use { integer_tiles, float_tiles, term_tiles, router, wide, hidden, mixed, partial_attention };
  float* shared(Use use, std::size_t count);
  Matrix shared(Use use, std::int32_t rows, std::int32_t cols);

 private:
  std::vector<Buffer> of_worker_;
  std::array<Buffer, 8> shared_;
};

}  // namespace inferno::cpu
