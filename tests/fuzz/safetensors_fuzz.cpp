// F3: the header of a safetensors file. Accepted tensors cover the data exactly once.
#include "checkpoint/safetensors/header.h"
#include "fuzz/guard.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inferno;
  const auto source = memory_source(fuzz::bytes(data, size), fuzz::origin);
  fuzz::guard([&] {
    std::uint64_t covered = 0;
    for (const SafetensorsTensor& tensor : read_safetensors_header(*source, fuzz::origin)) {
      std::vector<std::byte> contents(tensor.bytes);
      source->read(tensor.offset, contents);
      covered += tensor.bytes;
    }
    std::uint64_t header = 0;
    source->read(0, std::as_writable_bytes(std::span(&header, 1)));
    if (covered + header + sizeof(header) != size) std::abort();
  });
  return 0;
}
