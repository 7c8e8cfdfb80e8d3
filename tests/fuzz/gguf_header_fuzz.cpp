// F1: the header of a GGUF file, and every value in it.
#include "checkpoint/gguf/reader.h"
#include "fuzz/guard.h"

namespace {

using namespace inferno;

// Exceptions are slow under sanitizers: all accessors for a few keys, the matching accessor for all keys.
constexpr int thoroughly = 4;

void ask_everything(const GgufMetadata& metadata, const std::string& key) {
  fuzz::guard([&] { metadata.integer(key); });
  fuzz::guard([&] { metadata.number(key); });
  fuzz::guard([&] { metadata.flag(key); });
  fuzz::guard([&] { metadata.text(key); });
  fuzz::guard([&] { metadata.strings(key); });
  fuzz::guard([&] { metadata.integers(key); });
  fuzz::guard([&] { metadata.numbers(key); });
}

void read_everything(const GgufMetadata& metadata) {
  int asked = 0;
  for (const auto& [key, entry] : metadata.entries()) {
    if (asked++ < thoroughly) {
      ask_everything(metadata, key);
    } else if (entry.type == GgufType::string) {
      entry.is_array ? void(metadata.strings(key)) : void(metadata.text(key));
    } else if (entry.type == GgufType::boolean) {
      entry.is_array ? void(metadata.integers(key)) : void(metadata.flag(key));
    } else {
      entry.is_array ? void(metadata.numbers(key)) : void(metadata.number(key));
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto source = memory_source(fuzz::bytes(data, size), fuzz::origin);
  fuzz::guard([&] { read_everything(read_gguf_metadata(*source, fuzz::origin)); });
  fuzz::guard([&] { read_gguf_header(*source, fuzz::origin); });
  return 0;
}
