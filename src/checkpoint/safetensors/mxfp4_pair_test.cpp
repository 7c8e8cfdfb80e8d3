#include "checkpoint/safetensors/mxfp4_pair.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "support/caught_error.h"

namespace inferno {
namespace {

constexpr std::size_t block_size = sizeof(blocks::Mxfp4);

std::vector<std::byte> random_bytes(std::size_t count) {
  std::mt19937 random(7);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

StoredTensor stored(std::vector<std::byte> bytes, std::uint64_t offset = 0) {
  const std::uint64_t size = bytes.size() - offset;
  return {.format = WeightFormat::u8,
          .shape = {},
          .source = memory_source(std::move(bytes)),
          .offset = offset,
          .bytes = size};
}

struct Pair {
  std::vector<std::byte> codes, scales;
  std::shared_ptr<const ByteSource> source;
};

Pair make_pair_of(std::size_t blocks) {
  Pair pair = {random_bytes(blocks * 16), random_bytes(blocks), nullptr};
  pair.source = interleave_mxfp4(stored(pair.codes), stored(pair.scales));
  return pair;
}

TEST(Mxfp4Pair, KeepsTheOrderOfElements) {
  const std::size_t count = 5;
  const Pair pair = make_pair_of(count);
  std::array<blocks::Mxfp4, 5> read = {};
  pair.source->read(0, std::as_writable_bytes(std::span(read)));
  for (std::size_t b = 0; b < count; ++b) {
    EXPECT_EQ(read[b].exponent, static_cast<std::uint8_t>(pair.scales[b]));
    for (int i = 0; i < 32; ++i) {
      // Hugging Face: element 2j in the low nibble of byte j, 2j + 1 in the high one.
      const auto byte = static_cast<unsigned>(pair.codes[b * 16 + static_cast<std::size_t>(i / 2)]);
      const unsigned code = i % 2 == 0 ? byte & 15u : byte >> 4;
      blocks::Mxfp4 alone = {read[b].exponent, {static_cast<std::uint8_t>(code)}};
      EXPECT_EQ(read[b][i], alone[0]) << "block " << b << " element " << i;
    }
  }
}

TEST(Mxfp4Pair, ReadsAnyRange) {
  const std::size_t count = 6;
  const Pair pair = make_pair_of(count);
  ASSERT_EQ(pair.source->size(), count * block_size);
  std::vector<std::byte> whole(count * block_size);
  pair.source->read(0, whole);
  for (std::size_t from = 0; from <= whole.size(); ++from) {
    for (std::size_t length = 0; length <= whole.size() - from; ++length) {
      std::vector<std::byte> part(length);
      pair.source->read(from, part);
      ASSERT_TRUE(std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(from)))
          << from << " " << length;
    }
  }
}

TEST(Mxfp4Pair, ReadsMoreThanOneStepAtOnce) {
  const std::size_t count = 20000;
  const Pair pair = make_pair_of(count);
  std::vector<std::byte> whole(count * block_size);
  pair.source->read(0, whole);
  for (const std::size_t block : {std::size_t{0}, std::size_t{8191}, std::size_t{8192}, count - 1}) {
    std::array<std::byte, block_size> one = {};
    pair.source->read(block * block_size, one);
    EXPECT_TRUE(
        std::equal(one.begin(), one.end(), whole.begin() + static_cast<std::ptrdiff_t>(block * block_size)));
    EXPECT_EQ(one[0], pair.scales[block]);
  }
}

TEST(Mxfp4Pair, StartsWhereItsTensorsStart) {
  std::vector<std::byte> codes = random_bytes(100 + 32), scales = random_bytes(10 + 2);
  const auto source = interleave_mxfp4(stored(codes, 100), stored(scales, 10));
  std::array<std::byte, 2 * block_size> read = {};
  source->read(0, read);
  EXPECT_EQ(read[0], scales[10]);
  EXPECT_EQ(read[block_size], scales[11]);
}

TEST(Mxfp4Pair, RefusesToReadBeyondItsEnd) {
  const Pair pair = make_pair_of(2);
  std::array<std::byte, 2> two = {};
  for (const std::uint64_t offset : {std::uint64_t{33}, std::uint64_t{34}, ~std::uint64_t{0}}) {
    EXPECT_EQ(caught_error([&] { pair.source->read(offset, two); }).kind(), ErrorKind::corrupt);
  }
}

}  // namespace
}  // namespace inferno
