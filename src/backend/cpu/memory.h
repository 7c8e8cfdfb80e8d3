// Host memory for weights, cache and activations.
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "backend/backend.h"

namespace inferno::cpu {

struct MemoryState {
  std::size_t total = 0, available = 0;  // what this process may use: the machine's or its cgroup's
};
MemoryState memory_state();

// Zeroed and aligned to 64 bytes; large ones lie on huge pages, which doubles the bandwidth two threads
// reach. Error{io} naming `purpose` when there is not enough.
Buffer allocate(std::size_t bytes, std::string_view purpose);

// The same for pieces that are read together and live as long as each other, such as the weights of a model:
// small ones share huge pages too.
class Arena {
 public:
  Buffer allocate(std::size_t bytes, std::string_view purpose);

 private:
  std::shared_ptr<Buffer> chunk_;  // also held by every buffer that lies in it
  std::size_t used_ = 0;
};

}  // namespace inferno::cpu
