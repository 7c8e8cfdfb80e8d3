// M1: GGUF files. Seeds with one error each, then three mechanical sweeps over a valid file.
#include <gtest/gtest.h>

#include <random>

#include "checkpoint/gguf/open_gguf.h"
#include "checkpoint/open_checkpoint.h"
#include "hostile/gguf_seeds.h"
#include "hostile/rule.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

// Opens the model and reads one block's worth of every tensor.
void use(const Checkpoint& checkpoint) {
  for (const std::string& name : checkpoint.names()) {
    const auto tensor = checkpoint.find(name);
    std::vector<std::byte> bytes(std::min<std::uint64_t>(tensor->bytes, 256));
    tensor->read(tensor->bytes - bytes.size(), bytes);
  }
}

void expect_verdicts(const std::vector<GgufSeed>& seeds) {
  const TemporaryDirectory directory;
  for (const GgufSeed& seed : seeds) {
    const std::vector<std::byte> bytes = seed.make();
    const std::filesystem::path path = directory.write("seed.gguf", bytes);
    const Verdict verdict = judge({path.native(), bytes.size(), [&] { use(*open_checkpoint(path)); }});
    EXPECT_EQ(verdict.broken, "") << seed.name << ": " << verdict.message;
    EXPECT_EQ(verdict.refused, seed.refused) << seed.name << ": " << verdict.message;
  }
}

void add(Sweep& sweep, const std::string& variant, const std::vector<std::byte>& bytes) {
  const auto source = memory_source(bytes, "swept.gguf");
  sweep.add(variant, {"swept.gguf", bytes.size(), [&] { use(*open_gguf(source, "swept.gguf")); }});
}

TEST(HostileGguf, HasAtLeastEightySeeds) {
  EXPECT_GE(gguf_header_seeds().size() + gguf_key_seeds().size() + gguf_tensor_seeds().size(), 80u);
}

TEST(HostileGguf, HeaderSeeds) {
  expect_verdicts(gguf_header_seeds());
}
TEST(HostileGguf, KeySeeds) {
  expect_verdicts(gguf_key_seeds());
}
TEST(HostileGguf, TensorSeeds) {
  expect_verdicts(gguf_tensor_seeds());
}

TEST(HostileGguf, CutAtEveryByteOfTheHeaderAndInTheData) {
  const GgufImage image = tiny_llama_gguf(2).image();
  Sweep sweep;
  for (std::size_t size = 0; size < image.header_bytes; ++size) {
    add(sweep, "cut to " + std::to_string(size),
        {image.bytes.begin(), image.bytes.begin() + static_cast<std::ptrdiff_t>(size)});
  }
  std::mt19937 random(1);
  for (int i = 0; i < 200; ++i) {
    const std::size_t size = image.header_bytes + random() % (image.bytes.size() - image.header_bytes);
    add(sweep, "cut to " + std::to_string(size),
        {image.bytes.begin(), image.bytes.begin() + static_cast<std::ptrdiff_t>(size)});
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_EQ(sweep.loaded(), 0u);
}

TEST(HostileGguf, EveryBitOfTheFirstFourKibibytesFlipped) {
  std::vector<std::byte> bytes = tiny_llama_gguf(1).image().bytes;
  Sweep sweep;
  for (std::size_t bit = 0; bit < std::min<std::size_t>(bytes.size(), 4096) * 8; ++bit) {
    const auto mask = static_cast<std::byte>(1u << (bit % 8));
    bytes[bit / 8] ^= mask;
    add(sweep, "bit " + std::to_string(bit), bytes);
    bytes[bit / 8] ^= mask;
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 1000u);
}

TEST(HostileGguf, EveryFieldAtEveryEdge) {
  const GgufImage valid = tiny_llama_gguf(1).image();
  Sweep sweep;
  for (const GgufField& field : valid.fields) {
    for (const std::uint64_t value : edge_values(valid.value(field))) {
      GgufImage image = valid;
      image.patch(field.name, value);
      add(sweep, field.name + " = " + std::to_string(value), image.bytes);
    }
  }
  EXPECT_TRUE(sweep.result());
  EXPECT_GT(sweep.refused(), 500u);
}

}  // namespace
}  // namespace inferno
