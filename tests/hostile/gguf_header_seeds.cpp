#include <cstring>

#include "hostile/gguf_seeds.h"
#include "support/gguf_writer.h"

namespace inferno {
namespace {

constexpr auto corrupt = ErrorKind::corrupt;
constexpr auto unsupported = ErrorKind::unsupported;
using Bytes = std::vector<std::byte>;

Bytes with_magic(const char* magic) {
  Bytes bytes = tiny_llama_gguf().image().bytes;
  std::memcpy(bytes.data(), magic, 4);
  return bytes;
}

Bytes with_version(std::uint32_t version) {
  return tiny_llama_gguf(1, version).image().bytes;
}

Bytes with_field(const char* field, std::uint64_t value) {
  GgufImage image = tiny_llama_gguf().image();
  image.patch(field, value);
  return image.bytes;
}

Bytes cut_to(std::size_t size) {
  Bytes bytes = tiny_llama_gguf().image().bytes;
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::vector<GgufSeed> gguf_header_seeds() {
  return {
      {"valid version 3", {}, [] { return with_version(3); }},
      {"valid version 2", {}, [] { return with_version(2); }},
      {"valid with bytes after the data",
       {},
       [] { return cut_to(tiny_llama_gguf().image().bytes.size() + 100); }},
      {"no bytes", corrupt, [] { return Bytes(); }},
      {"one byte", corrupt, [] { return Bytes(1); }},
      {"zeros", corrupt, [] { return Bytes(4096); }},
      {"bad magic", corrupt, [] { return with_magic("FOO "); }},
      {"magic of GGML", unsupported, [] { return with_magic("lmgg"); }},
      {"magic of GGJT", unsupported, [] { return with_magic("tjgg"); }},
      {"magic of an adapter", unsupported, [] { return with_magic("algg"); }},
      {"magic of a zip file", corrupt, [] { return with_magic("PK\x03\x04"); }},
      {"magic that steers a terminal", corrupt, [] { return with_magic("\x1b[2J"); }},
      {"reversed magic", unsupported, [] { return with_magic("FUGG"); }},
      {"version 0", unsupported, [] { return with_version(0); }},
      {"version 1", unsupported, [] { return with_version(1); }},
      {"version 4", unsupported, [] { return with_version(4); }},
      {"version 65535", unsupported, [] { return with_version(65535); }},
      {"the greatest version", unsupported, [] { return with_version(~0u); }},
      {"big-endian version 3", unsupported, [] { return with_version(0x03000000); }},
      {"big-endian version 2", unsupported, [] { return with_version(0x02000000); }},
      {"one tensor more", corrupt, [] { return with_field("tensors", 12); }},
      {"2^16 tensors", corrupt, [] { return with_field("tensors", 1u << 16); }},
      {"2^32 tensors", corrupt, [] { return with_field("tensors", std::uint64_t{1} << 32); }},
      {"2^63 tensors", corrupt, [] { return with_field("tensors", std::uint64_t{1} << 63); }},
      {"-1 tensors", corrupt, [] { return with_field("tensors", ~std::uint64_t{0}); }},
      {"one key more", corrupt, [] { return with_field("keys", 14); }},
      {"one key less", corrupt, [] { return with_field("keys", 12); }},
      {"no keys", corrupt, [] { return with_field("keys", 0); }},
      {"2^32 keys", corrupt, [] { return with_field("keys", std::uint64_t{1} << 32); }},
      {"-1 keys", corrupt, [] { return with_field("keys", ~std::uint64_t{0}); }},
      {"only the magic", corrupt, [] { return cut_to(4); }},
      {"only magic and version", corrupt, [] { return cut_to(8); }},
      {"only the preamble", corrupt, [] { return cut_to(24); }},
      {"cut inside the first key", corrupt, [] { return cut_to(36); }},
      {"header without data", corrupt, [] { return cut_to(tiny_llama_gguf().image().header_bytes); }},
      {"one byte of data missing", corrupt,
       [] { return cut_to(tiny_llama_gguf().image().bytes.size() - 1); }},
  };
}

}  // namespace inferno
