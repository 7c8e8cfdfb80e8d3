// F2: a GGUF file as a checkpoint, and one block of each of its tensors as floats.
#include "checkpoint/generation_config.h"
#include "checkpoint/gguf/open_gguf.h"
#include "fuzz/guard.h"
#include "tensor/format.h"

namespace {

using namespace inferno;

void decode_a_block_of_each(const Checkpoint& checkpoint) {
  for (const std::string& name : checkpoint.names()) {
    const StoredTensor tensor = checkpoint.find(name).value();
    if (tensor.bytes == 0) continue;
    std::vector<std::byte> block(block_bytes(tensor.format));
    std::vector<float> values(static_cast<std::size_t>(block_elements(tensor.format)));
    for (const std::uint64_t from : {std::uint64_t{0}, tensor.bytes - block.size()}) {
      tensor.read(from, block);
      decode(tensor.format, block, values);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto source = memory_source(fuzz::bytes(data, size), fuzz::origin);
  fuzz::guard([&] {
    const auto checkpoint = open_gguf(source, fuzz::origin);
    decode_a_block_of_each(*checkpoint);
    fuzz::guard([&] { generation_config(checkpoint->config()); });
    checkpoint->config().unread();
  });
  return 0;
}
