#include <cstring>

#include "hostile/gguf_seeds.h"
#include "support/gguf_writer.h"

namespace inferno {
namespace {

constexpr auto corrupt = ErrorKind::corrupt;
constexpr auto unsupported = ErrorKind::unsupported;
using Bytes = std::vector<std::byte>;

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

constexpr std::uint64_t big = std::uint64_t{1} << 62;

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
       [] { return with({{"tensor 0 dimension 0", big}, {"tensor 0 dimension 1", 4}}); }},
      {"elements that overflow 2^63", corrupt,
       [] { return with({{"tensor 0 dimension 0", big}, {"tensor 0 dimension 1", 2}}); }},
      {"bytes that overflow 2^64", corrupt,
       [] { return with({{"tensor 0 dimension 0", big}, {"tensor 0 dimension 1", 1}}); }},
      {"bytes beyond the file", corrupt, [] { return with({{"tensor 0 dimension 1", 1u << 20}}); }},
      {"overflow hidden by a zero", corrupt, [] { return with_tensor("x", 0, {big, 8, 0}, 0); }},
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

std::vector<GgufSeed> gguf_tensor_seeds() {
  std::vector<GgufSeed> seeds = {
      {"valid name of 255 bytes", {}, [] { return with_tensor(std::string(255, 'n'), 0, {1}, 4); }},
      {"name of 256 bytes", corrupt, [] { return with_tensor(std::string(256, 'n'), 0, {1}, 4); }},
      {"name of 2^64 - 1 bytes", corrupt, [] { return with({{"tensor 0 name length", ~std::uint64_t{0}}}); }},
      {"name without letters", corrupt, [] { return with_tensor("", 0, {1}, 4); }},
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
