// F4: the index of shards. No accepted name leads out of the directory.
#include "checkpoint/safetensors/shards.h"
#include "fuzz/guard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  fuzz::guard([&] {
    for (const auto& [tensor, shard] : parse_safetensors_index(fuzz::text(data, size), fuzz::origin)) {
      if (shard.find('/') != std::string::npos || shard.find('\0') != std::string::npos || shard == "..")
        std::abort();
    }
  });
  return 0;
}
