#include "hostile/gguf_seeds.h"

#include <cstring>

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

Bytes with(const std::string& key, GgufValue value) {
  return tiny_llama_gguf().set(key, std::move(value)).image().bytes;
}

// A raw value: a type, then numbers of the given widths.
struct Number {
  std::uint64_t value;
  std::size_t width;
};

Bytes with_raw(const std::string& key, std::uint32_t type, const std::vector<Number>& numbers) {
  Bytes bytes;
  for (const Number& number : numbers) {
    const auto* from = reinterpret_cast<const std::byte*>(&number.value);
    bytes.insert(bytes.end(), from, from + number.width);
  }
  return tiny_llama_gguf().set_raw(key, type, bytes).image().bytes;
}

constexpr std::uint32_t u32_type = 4, bool_type = 7, string_type = 8, array_type = 9;
constexpr std::uint64_t huge = std::uint64_t{1} << 62;

std::vector<GgufSeed> lists() {
  return {
      {"valid list of strings", {}, [] { return with("x", std::vector<std::string>{"", "a"}); }},
      {"valid empty list", {}, [] { return with("x", std::vector<float>{}); }},
      {"list of 2^62 bytes", corrupt, [] { return with_raw("x", array_type, {{0, 4}, {huge, 8}}); }},
      {"list of 2^62 strings", corrupt,
       [] { return with_raw("x", array_type, {{string_type, 4}, {huge, 8}}); }},
      {"list whose size overflows", corrupt,
       [] { return with_raw("x", array_type, {{10, 4}, {(huge >> 1) + 1, 8}}); }},
      {"list of -1 flags", corrupt,
       [] { return with_raw("x", array_type, {{bool_type, 4}, {~std::uint64_t{0}, 8}}); }},
      {"nested array", corrupt,
       [] { return with_raw("x", array_type, {{array_type, 4}, {1, 8}, {0, 4}, {0, 8}}); }},
      {"list of an unknown type", corrupt,
       [] { return with_raw("x", array_type, {{13, 4}, {1, 8}, {0, 8}}); }},
      {"list with a flag of 2", corrupt,
       [] { return with_raw("x", array_type, {{bool_type, 4}, {2, 8}, {1, 1}, {2, 1}}); }},
      {"list cut after its type", corrupt, [] { return with_field("key 10 elements", huge); }},
      {"tokens of 2^63 bytes", corrupt,
       [] { return with_field("key 10 string length", std::uint64_t{1} << 63); }},
      {"tokens of another type", corrupt, [] { return with_field("key 10 element type", 12); }},
      {"tokens that are no list", {}, [] { return with("tokenizer.ggml.tokens", std::uint32_t{4}); }},
  };
}

std::vector<GgufSeed> known_keys() {
  return {
      {"valid alignment",
       {},
       [] { return tiny_llama_gguf().set("general.alignment", std::uint32_t{64}).align(64).image().bytes; }},
      {"alignment 0", corrupt, [] { return with("general.alignment", std::uint32_t{0}); }},
      {"alignment 3", corrupt, [] { return with("general.alignment", std::uint32_t{3}); }},
      {"alignment 33", corrupt, [] { return with("general.alignment", std::uint32_t{33}); }},
      {"alignment 2^31", corrupt, [] { return with("general.alignment", std::uint32_t{1} << 31); }},
      {"alignment -1", corrupt, [] { return with("general.alignment", ~std::uint32_t{0}); }},
      {"alignment as u64", corrupt, [] { return with("general.alignment", std::uint64_t{32}); }},
      {"alignment as a string", corrupt, [] { return with("general.alignment", std::string("32")); }},
      {"alignment as a list", corrupt,
       [] { return with("general.alignment", std::vector<std::uint32_t>{32}); }},
      {"alignment that the data does not follow", corrupt,
       [] { return with("general.alignment", std::uint32_t{4096}); }},
      {"architecture as a number", corrupt, [] { return with("general.architecture", std::uint32_t{1}); }},
      {"architecture without letters", corrupt, [] { return with("general.architecture", std::string()); }},
      {"architecture in broken UTF-8", corrupt,
       [] { return with("general.architecture", std::string("\xFF\xFE")); }},
      {"unknown architecture", {}, [] { return with("general.architecture", std::string("nobody")); }},
      {"split into 2^16 - 1", unsupported, [] { return with("split.count", std::uint16_t{65535}); }},
      {"split into 3 under another name", corrupt, [] { return with("split.count", std::uint16_t{3}); }},
      {"split count as a string", corrupt, [] { return with("split.count", std::string("3")); }},
      {"split count of 2^64 - 1", corrupt, [] { return with("split.count", ~std::uint64_t{0}); }},
      {"eos token as a string", corrupt,
       [] { return with("tokenizer.ggml.eos_token_id", std::string("3")); }},
      {"bos token as a list", corrupt,
       [] { return with("tokenizer.ggml.bos_token_id", std::vector<std::int32_t>{3}); }},
      {"temperature as a string", corrupt, [] { return with("general.sampling.temp", std::string("hot")); }},
  };
}

struct Change {
  const char* field;
  std::uint64_t value;
};

Bytes with(const std::vector<Change>& changes) {
  GgufImage image = tiny_llama_gguf().image();
  for (const Change& change : changes) image.patch(change.field, change.value);
  return image.bytes;
}

Bytes with_tensor(const std::string& name, std::uint32_t type, std::vector<std::uint64_t> dimensions,
                  std::size_t bytes) {
  return tiny_llama_gguf().tensor(name, type, std::move(dimensions), Bytes(bytes)).image().bytes;
}

Bytes with_factors(const std::string& name, std::vector<float> values) {
  Bytes bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return tiny_llama_gguf().tensor(name, 0, {values.size()}, bytes).image().bytes;
}

std::vector<GgufSeed> shapes() {
  return {
      {"valid tensor without elements", {}, [] { return with_tensor("x", 0, {8, 0}, 0); }},
      {"valid scalar", {}, [] { return with_tensor("x", 0, {}, 4); }},
      {"valid tensor of four dimensions", {}, [] { return with_tensor("x", 0, {2, 3, 4, 5}, 480); }},
      {"five dimensions", corrupt, [] { return with_tensor("x", 0, {1, 1, 1, 1, 1}, 4); }},
      {"2^32 - 1 dimensions", corrupt, [] { return with({{"tensor 0 dimensions", 0xFFFFFFFF}}); }},
      {"one dimension too few", corrupt, [] { return with({{"tensor 0 dimensions", 1}}); }},
      {"dimension of 2^63", corrupt, [] { return with({{"tensor 0 dimension 0", std::uint64_t{1} << 63}}); }},
      {"dimension of -1", corrupt, [] { return with({{"tensor 0 dimension 1", ~std::uint64_t{0}}}); }},
      {"elements that overflow 2^64", corrupt,
       [] { return with({{"tensor 0 dimension 0", huge}, {"tensor 0 dimension 1", 4}}); }},
      {"elements that overflow 2^63", corrupt,
       [] { return with({{"tensor 0 dimension 0", huge}, {"tensor 0 dimension 1", 2}}); }},
      {"bytes that overflow 2^64", corrupt,
       [] { return with({{"tensor 0 dimension 0", huge}, {"tensor 0 dimension 1", 1}}); }},
      {"bytes beyond the file", corrupt, [] { return with({{"tensor 0 dimension 1", 1u << 20}}); }},
      {"overflow hidden by a zero", corrupt, [] { return with_tensor("x", 0, {huge, 8, 0}, 0); }},
      {"row of half a Q8_0 block", corrupt, [] { return with_tensor("x", 8, {16, 2}, 34); }},
      {"row of half a Q4_K block", corrupt, [] { return with_tensor("x", 12, {128, 2}, 144); }},
      {"row of half an MXFP4 block", corrupt, [] { return with_tensor("x", 39, {48, 2}, 51); }},
      {"scalar in blocks", corrupt, [] { return with_tensor("x", 8, {}, 34); }},
      {"valid row of no blocks", {}, [] { return with_tensor("x", 12, {0, 4}, 0); }},
  };
}

std::vector<GgufSeed> types() {
  std::vector<GgufSeed> seeds;
  for (const std::uint32_t type :
       {4u, 5u, 9u, 15u, 16u, 17u, 18u, 19u, 22u, 29u, 31u, 34u, 36u, 40u, 41u, 42u, 43u, 77u, ~0u}) {
    seeds.push_back({"tensor of type " + std::to_string(type), unsupported,
                     [type] { return with_tensor("x", type, {256}, 1024); }});
  }
  for (const std::uint32_t type : {0u,  1u,  2u,  3u,  6u,  7u,  8u,  10u, 11u, 12u, 13u, 14u,
                                   20u, 21u, 23u, 24u, 25u, 26u, 27u, 28u, 30u, 35u, 39u}) {
    seeds.push_back({"valid tensor of type " + std::to_string(type), {}, [type] {
                       return tiny_llama_gguf().tensor("x", type, {256, 2}).image().bytes;
                     }});
  }
  return seeds;
}

std::vector<GgufSeed> places() {
  return {
      {"offset beyond the file", corrupt, [] { return with({{"tensor 10 offset", 1u << 20}}); }},
      {"offset that overflows", corrupt, [] { return with({{"tensor 10 offset", ~std::uint64_t{31}}}); }},
      {"offset of 2^63", corrupt, [] { return with({{"tensor 10 offset", std::uint64_t{1} << 63}}); }},
      {"offset off the grid", corrupt, [] { return with({{"tensor 10 offset", 1}}); }},
      {"two tensors at one place", corrupt, [] { return with({{"tensor 3 offset", 0}}); }},
      {"tensors that overlap by a block", corrupt, [] { return with({{"tensor 1 offset", 96}}); }},
      {"last tensor over the first", corrupt, [] { return with({{"tensor 10 offset", 0}}); }},
  };
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

std::vector<GgufSeed> gguf_key_seeds() {
  std::vector<GgufSeed> seeds = {
      {"valid extra keys",
       {},
       [] { return with("other.key", std::string("\xFF not UTF-8, which values may be")); }},
      {"key of 2^63 bytes", corrupt, [] { return with_field("key 0 length", std::uint64_t{1} << 63); }},
      {"key of 2^64 - 1 bytes", corrupt, [] { return with_field("key 0 length", ~std::uint64_t{0}); }},
      {"key of 65536 bytes", corrupt, [] { return with(std::string(65536, 'k'), std::uint32_t{0}); }},
      {"key of 65535 bytes", {}, [] { return with(std::string(65535, 'k'), std::uint32_t{0}); }},
      {"key without letters", corrupt, [] { return with("", std::uint32_t{0}); }},
      {"key in broken UTF-8", corrupt, [] { return with("\xC3(", std::uint32_t{0}); }},
      {"key in overlong UTF-8", corrupt, [] { return with("\xC0\xAF", std::uint32_t{0}); }},
      {"key with a surrogate", corrupt, [] { return with("\xED\xA0\x80", std::uint32_t{0}); }},
      {"key of unknown type 13", corrupt, [] { return with_raw("x", 13, {{0, 8}}); }},
      {"key of unknown type 2^32 - 1", corrupt, [] { return with_raw("x", ~0u, {{0, 8}}); }},
      {"key given twice", corrupt, [] { return with_raw("general.architecture", u32_type, {{0, 4}}); }},
      {"key given twice alike", corrupt, [] { return with_raw("llama.block_count", u32_type, {{1, 4}}); }},
      {"flag of 2", corrupt, [] { return with_raw("x", bool_type, {{2, 1}}); }},
      {"string of 2^64 - 1 bytes", corrupt,
       [] { return with_raw("x", string_type, {{~std::uint64_t{0}, 8}}); }},
      {"string that reaches the end of the file", corrupt,
       [] { return with_raw("x", string_type, {{3000, 8}}); }},
  };
  for (std::vector<GgufSeed> more : {lists(), known_keys()})
    seeds.insert(seeds.end(), more.begin(), more.end());
  return seeds;
}

std::vector<GgufSeed> gguf_tensor_seeds() {
  std::vector<GgufSeed> seeds = {
      {"valid name of 255 bytes", {}, [] { return with_tensor(std::string(255, 'n'), 0, {1}, 4); }},
      {"name of 256 bytes", corrupt, [] { return with_tensor(std::string(256, 'n'), 0, {1}, 4); }},
      {"name of 2^64 - 1 bytes", corrupt, [] { return with({{"tensor 0 name length", ~std::uint64_t{0}}}); }},
      {"name without letters", corrupt, [] { return with_tensor("", 0, {1}, 4); }},
      {"name with a zero byte", corrupt, [] { return with_tensor(std::string("a\0b", 3), 0, {1}, 4); }},
      {"name in broken UTF-8", corrupt, [] { return with_tensor("\xE2\x82", 0, {1}, 4); }},
      {"name that steers a terminal", corrupt, [] { return with_tensor("\x1b[2J\r\n", 8, {16}, 34); }},
      {"tensor given twice", corrupt, [] { return with_tensor("token_embd.weight", 0, {1}, 4); }},
      {"rope factors of zero", corrupt, [] { return with_factors("rope_freqs.weight", {1.0f, 0.0f}); }},
      {"rope factors that are not numbers", corrupt,
       [] { return with_factors("rope_freqs.weight", {1.0f, __builtin_nanf("")}); }},
      {"endless rope factors", corrupt, [] { return with_factors("rope_freqs.weight", {__builtin_inff()}); }},
      {"valid rope factors", {}, [] { return with_factors("rope_freqs.weight", {1.0f, 8.0f}); }},
      {"rope factors of another type", corrupt, [] { return with_tensor("rope_freqs.weight", 8, {32}, 34); }},
      {"rope factors of 400 KB", corrupt,
       [] { return with_factors("rope_freqs.weight", std::vector<float>(100000, 2.0f)); }},
      {"long rope factors without short ones", corrupt,
       [] { return with_factors("rope_factors_long.weight", {1.0f}); }},
  };
  for (std::vector<GgufSeed> more : {shapes(), types(), places()})
    seeds.insert(seeds.end(), more.begin(), more.end());
  return seeds;
}

}  // namespace inferno
