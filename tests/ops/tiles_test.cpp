// Layout::tiled: weights are stored in device memory byte for byte as device/tiles.cuh defines, for any
// number of rows and columns, and products read that layout.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "backend/cuda/device/tiles.cuh"
#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tensor/format.h"
#include "tensor/random_weight.h"
#include "tolerance.h"

namespace inferno {
namespace {

namespace tiles = cuda::tiles;

struct Shape {
  int count = 1, rows = 0, cols = 0, alternating = 0;
};

// Writes the elements of a row to their offsets in the tile.
class TileWriter {
 public:
  TileWriter(std::byte* tile, int g) : tile_(tile), g_(g) {}

  void write(WeightFormat format, const std::byte* row, int cols) {
    for (int k = 0; k < cols; ++k) {
      if (format == WeightFormat::q8_0) {
        write(reinterpret_cast<const blocks::Q8_0*>(row)[k / 32], k);
      } else if (format == WeightFormat::mxfp4) {
        write(reinterpret_cast<const blocks::Mxfp4*>(row)[k / 32], k);
      } else if (format == WeightFormat::q4_k) {
        write(reinterpret_cast<const blocks::Q4_K*>(row)[k / 256], k);
      } else if (block_elements(format) > 1) {
        visit(format, [&]<Block B>(B) {
          if constexpr (blocks::Scaled<B> || std::is_same_v<B, blocks::Q4_0>) {
            write_scaled(reinterpret_cast<const B*>(row)[k / B::elements], k);
          }
        });
      } else {
        std::byte* to = tile_ + k / 64 * 1024 + tiles::run_16_bit(g_, k % 64 / 8) + k % 8 * 2;
        std::memcpy(to, row + std::ptrdiff_t{k} * 2, 2);
      }
    }
  }

 private:
  void write(const blocks::Q8_0& block, int k) {
    std::byte* chunk = tile_ + k / 64 * 544;
    std::memcpy(chunk + tiles::run_q8_0(g_, k % 64 / 8) + k % 8, &block.quants[k % 32], 1);
    std::memcpy(chunk + tiles::scale_q8_0(g_, k % 64 / 32), &block.scale, 2);
  }

  void write(const blocks::Mxfp4& block, int k) {
    std::byte* chunk = tile_ + k / 64 * 272;
    const int in_block = k % 32;
    write_e2m1(chunk + tiles::run_mxfp4(g_, k % 64 / 8), k,
               block.nibbles[in_block % 16] >> (in_block < 16 ? 0 : 4) & 15);
    chunk[tiles::exponent_mxfp4(g_, k % 64 / 32)] = static_cast<std::byte>(block.exponent);
  }

  void write(const blocks::Q4_K& block, int k) {
    std::byte* chunk = tile_ + k / 256 * 1152;
    std::memcpy(chunk + tiles::head_q4_k(g_), &block, 16);
    const int in_block = k % 256, shift = in_block % 64 / 32 * 4;
    const int code = block.nibbles[in_block / 64 * 32 + in_block % 32] >> shift & 15;
    std::byte& to = chunk[tiles::run_q4_k(g_, in_block / 8) + k % 8];
    to |= static_cast<std::byte>(code << shift);
  }

  // In each half word: the signs of codes 0, 2, 3, 1 from bit 15 down, then the magnitudes of codes 0 to 3.
  static void write_e2m1(std::byte* word, int k, int code) {
    constexpr int sign_bits[4] = {15, 12, 14, 13};
    const int pair = k % 8 / 2;
    add_bits(word + k % 2 * 2, code >> 3 << sign_bits[pair] | (code & 7) << (9 - 3 * pair));
  }
  static void add_bits(std::byte* to, int bits) {
    std::uint16_t half = 0;
    std::memcpy(&half, to, 2);
    half = static_cast<std::uint16_t>(half | bits);
    std::memcpy(to, &half, 2);
  }

  // Bytes: in order, or E4M3 with codes 0 to 3 of a word in bytes 1, 3, 0 and 2. Four-bit codes: E2M1 as
  // above, or even columns in the low half of a word and odd ones in the high half.
  template <class B>
  void write_scaled(const B& block, int k) {
    constexpr tiles::ScaledChunk shape = tiles::scaled_chunk_of<B>();
    std::byte* chunk = tile_ + k / 128 * shape.bytes();
    std::byte* run = chunk + shape.run(g_, k % 128 / 8);
    const int in_block = k % B::elements, number = k % 128 / B::elements;
    std::byte* extra = chunk + shape.extra(g_, number);
    if constexpr (requires { block.codes; }) {
      constexpr bool is_integer = requires { block.zero; };
      constexpr int places[4] = {1, 3, 0, 2};
      run[is_integer ? k % 8 : k % 8 / 4 * 4 + places[k % 4]] = static_cast<std::byte>(block.codes[in_block]);
    } else {
      const int code = blocks::nibble_in_groups(block.nibbles, in_block);
      if constexpr (requires { block.factor; }) {
        write_e2m1(run, k, code);
      } else {
        add_bits(run + k % 2 * 2, code << (k % 8 / 2 * 4));
      }
    }
    if constexpr (requires { block.factor; }) std::memcpy(extra, block.scales, sizeof(block.scales));
    if constexpr (requires { block.zero; }) *extra = static_cast<std::byte>(block.zero);
    std::memcpy(chunk + shape.scale(g_, number), &block, static_cast<std::size_t>(shape.scale_bytes));
  }

  std::byte* tile_;
  int g_;
};

// The expected device memory, with zeros for missing elements.
std::vector<std::byte> tiled(WeightFormat format, const Shape& shape, std::span<const std::byte> rows) {
  const std::int64_t tile_bytes = tiles::tile_bytes(format, shape.cols);
  const std::int64_t each = tiles::padded_rows(shape.rows) / 8;
  const std::size_t row_bytes = bytes_for(format, static_cast<std::size_t>(shape.cols));
  std::vector<std::byte> out(static_cast<std::size_t>(shape.count * each * tile_bytes));
  for (std::int64_t row = 0; row < std::int64_t{shape.count} * shape.rows; ++row) {
    const std::int64_t in_matrix = row % shape.rows;
    std::byte* tile = out.data() + (row / shape.rows * each + in_matrix / 8) * tile_bytes;
    TileWriter(tile, static_cast<int>(in_matrix % 8))
        .write(format, rows.data() + static_cast<std::size_t>(row) * row_bytes, shape.cols);
  }
  return out;
}

std::vector<std::byte> random_rows(WeightFormat format, const Shape& shape, std::uint64_t seed) {
  std::vector<std::byte> out(
      bytes_for(format, static_cast<std::size_t>(shape.count) * static_cast<std::size_t>(shape.rows) *
                            static_cast<std::size_t>(shape.cols)));
  fill_random(format, out, 2.0f, seed);
  return out;
}

class Tiles : public FormatTest {
 protected:
  // Numbers of columns in blocks; plain formats also get tails that are not multiples of eight.
  std::vector<int> ragged_columns() const {
    const int block = block_elements(format);
    if (block == 256) return {256, 768, 2816};
    if (block > 1) return {block, 3 * block, 5 * block, 2880 / block * block};
    return {1, 17, 64, 80, 96, 1030, 2880};
  }
  void expect_tiles(const Weight& weight, const std::vector<std::byte>& expected) {
    ASSERT_EQ(weight.memory.size(), expected.size());
    ASSERT_TRUE(device.backend().relayout(weight));
    std::vector<std::byte> found(expected.size());
    const auto words = static_cast<std::int32_t>(expected.size() / 4);
    device.backend().download(found, {weight.memory.data(), DType::i32, 1, words});
    const auto differs = std::mismatch(found.begin(), found.end(), expected.begin()).first - found.begin();
    EXPECT_EQ(differs, static_cast<std::ptrdiff_t>(found.size()))
        << "byte " << differs << " of tiles of " << tiles::tile_bytes(format, weight.cols);
  }
  void expect_product(const Weight& weight, const HostMatrix& values, int tokens) {
    HostMatrix input = random_matrix(tokens, weight.cols, 1.0, 31);
    const Matrix in = device.upload(input, device.activations());
    const Matrix out = device.poisoned(tokens, weight.rows, DType::f32);
    device.backend().linear(out, in, {{&weight}, {}});
    EXPECT_TRUE(agrees(device.download(out), reference::linear(input, values, {}),
                       relative_tolerance(device.activations())))
        << weight.rows << " rows of " << weight.cols << ", " << tokens << " tokens";
  }
};

TEST_P(Tiles, HoldEveryElementInItsPlaceAndZerosElsewhere) {
  for (const int cols : ragged_columns()) {
    for (const Shape& shape : {Shape{1, 1, cols}, Shape{1, 24, cols}, Shape{1, 131, cols}, Shape{3, 13, cols},
                               Shape{2, 26, cols, 26}, Shape{3, 24, cols, 24}, Shape{1, 40, cols, 10}}) {
      SCOPED_TRACE(testing::Message() << shape.count << " of " << shape.rows << " rows of " << cols);
      const std::vector<std::byte> stored = random_rows(format, shape, 11);
      const std::size_t row_bytes = bytes_for(format, static_cast<std::size_t>(cols));
      const WeightSource source = {.format = format,
                                   .count = shape.count,
                                   .rows = shape.rows,
                                   .cols = cols,
                                   .alternating = shape.alternating,
                                   .read = [&](std::int64_t first, std::span<std::byte> to) {
                                     const auto at = static_cast<std::size_t>(first) * row_bytes;
                                     std::memcpy(to.data(), stored.data() + at, to.size());
                                   }};
      const std::vector<std::byte> ordered = read_weight(source), expected = tiled(format, shape, ordered);
      Weight loaded;
      device.backend().load({&loaded, 1}, {&source, 1});
      expect_tiles(loaded, expected);
      expect_tiles(device.backend().pack({format, shape.count, shape.rows, cols, ordered}), expected);
    }
  }
}

TEST_P(Tiles, AreMultipliedWhateverIsMissingInTheLast) {
  for (const int cols : ragged_columns()) {
    for (const int rows : {1, 17, 23, 131}) {
      const TestWeight& weight = device.weight({.format = format, .rows = rows, .cols = cols}, 12);
      for (const int tokens : {1, 3, 8, 20, 200}) {
        if (rows * tokens < 16) continue;  // so few sums may all cancel
        expect_product(weight.packed, weight.values[0], tokens);
      }
    }
  }
}

TEST_P(Tiles, AreMultipliedInATableOfManyRows) {
  for (const int cols : {96, 128, 256}) {  // 96: the last chunk is half empty
    if (cols % block_elements(format) != 0) continue;
    const TestWeight& weight = device.weight({.format = format, .rows = 50257, .cols = cols}, 13);
    for (const int tokens : {1, 3, 20}) expect_product(weight.packed, weight.values[0], tokens);
  }
}

TEST_P(Tiles, AreCutBetweenGateAndUpOnlyWhereATileBegins) {
  const ActivationSpec relu = {.kind = Activation::relu, .gated = true};
  const int cols = 480 % block_elements(format) == 0 ? 480 : 512;
  for (const int hidden : {12, 16, 100, 131}) {
    const TestWeight& both = device.weight({.format = format, .rows = 2 * hidden, .cols = cols}, 14);
    const TestWeight& gate = device.weight({.format = format, .rows = hidden, .cols = cols}, 15);
    const TestWeight& up = device.weight({.format = format, .rows = hidden, .cols = cols}, 16);
    for (const int tokens : {1, 3, 8, 20}) {
      HostMatrix input = random_matrix(tokens, cols, 1.0, 17);
      const Matrix in = device.upload(input, device.activations());
      const auto expect = [&](const Linear& linear, const HostMatrix& wide_expected) {
        const Matrix wide = device.poisoned(tokens, 2 * hidden, DType::f32);
        const Matrix out = device.poisoned(tokens, hidden, device.activations());
        device.backend().linear_activated(out, wide, in, linear, relu);
        EXPECT_TRUE(agrees(device.download(out), reference::activate(wide_expected, relu),
                           2.0 * relative_tolerance(device.activations())))
            << hidden << " hidden, " << tokens << " tokens, " << linear.parts.size() << " parts";
      };
      expect({{&both.packed}, {}}, reference::linear(input, both.values[0], {}));
      expect({{&gate.packed, &up.packed}, {}},
             reference::side_by_side(
                 {reference::linear(input, gate.values[0], {}), reference::linear(input, up.values[0], {})}));
    }
  }
}

std::vector<std::string> tiled_formats() {
  std::vector<std::string> names;
  for (const WeightFormat format : all_formats) {
    if (cuda::traits_of(format).layout == cuda::Layout::tiled) names.emplace_back(name_of(format));
  }
  return names;
}

INSTANTIATE_TEST_SUITE_P(Ops, Tiles,
                         testing::Combine(testing::Values(backend_names().front()),
                                          testing::ValuesIn(tiled_formats())),
                         backend_and_format_test_name);

class NotInTiles : public BackendTest {};

// Kernels multiply an MXFP4 scale by 2^126 in bf16, which can represent scales up to 2.
TEST_P(NotInTiles, Mxfp4WithALargeScaleIsMultipliedAsStored) {
  const Shape shape = {.rows = 37, .cols = 480};
  std::vector<std::byte> stored = random_rows(WeightFormat::mxfp4, shape, 18);
  for (std::size_t block = 0; block < stored.size() / 17; block += 5) stored[17 * block] = std::byte{140};
  const Weight weight =
      device.backend().pack({WeightFormat::mxfp4, 1, shape.rows, shape.cols, std::span(stored)});
  EXPECT_FALSE(device.backend().relayout(weight));
  std::vector<float> decoded(static_cast<std::size_t>(shape.rows) * static_cast<std::size_t>(shape.cols));
  decode(WeightFormat::mxfp4, stored, decoded);
  HostMatrix values(shape.rows, shape.cols);
  values.values.assign(decoded.begin(), decoded.end());
  for (const int tokens : {1, 3, 20, 200}) {
    HostMatrix input = random_matrix(tokens, shape.cols, 1.0, 19);
    const Matrix in = device.upload(input, device.activations());
    const Matrix out = device.poisoned(tokens, shape.rows, DType::f32);
    device.backend().linear(out, in, {{&weight}, {}});
    EXPECT_TRUE(agrees(device.download(out), reference::linear(input, values, {}),
                       relative_tolerance(device.activations())))
        << tokens << " tokens";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, NotInTiles, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
