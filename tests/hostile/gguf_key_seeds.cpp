#include <cstring>

#include "hostile/gguf_seeds.h"
#include "support/gguf_writer.h"

namespace inferno {
namespace {

constexpr auto corrupt = ErrorKind::corrupt;
constexpr auto unsupported = ErrorKind::unsupported;
using Bytes = std::vector<std::byte>;

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

Bytes with_field(const char* field, std::uint64_t value) {
  GgufImage image = tiny_llama_gguf().image();
  image.patch(field, value);
  return image.bytes;
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

}  // namespace

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

}  // namespace inferno
