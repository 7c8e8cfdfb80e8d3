// Weights that Backend::load() reads from files have the same bytes in memory as those that pack() gets.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "ops/backends.h"
#include "tensor/random_weight.h"

namespace inferno {
namespace {

struct Stored {
  WeightFormat format = WeightFormat::bf16;
  int count = 1, rows = 0, cols = 0, alternating = 0;
  std::vector<std::byte> bytes;

  WeightSource source() const {
    return {.format = format,
            .count = count,
            .rows = rows,
            .cols = cols,
            .alternating = alternating,
            .read = [this](std::int64_t first, std::span<std::byte> to) {
              const std::size_t row_bytes = bytes_for(format, static_cast<std::size_t>(cols));
              std::memcpy(to.data(), bytes.data() + static_cast<std::size_t>(first) * row_bytes, to.size());
            }};
  }
};

Stored stored(WeightFormat format, int count, int rows, int cols, int alternating, std::uint64_t seed) {
  Stored out = {format, count, rows, cols, alternating, {}};
  out.bytes.resize(bytes_for(format, static_cast<std::size_t>(count) * static_cast<std::size_t>(rows) *
                                         static_cast<std::size_t>(cols)));
  fill_random(format, out.bytes, 2.0f, seed);
  return out;
}

std::vector<std::byte> content(Backend& backend, const Weight& weight) {
  std::vector<std::byte> bytes(weight.memory.size());
  backend.download(bytes,
                   {weight.memory.data(), DType::i32, 1, static_cast<std::int32_t>((bytes.size() + 3) / 4)});
  return bytes;
}

class LoadWeights : public BackendTest {
 protected:
  // All weights in one call, then each packed alone.
  void expect_same_as_packed(const std::vector<Stored>& weights) {
    Backend& backend = device.backend();
    std::vector<WeightSource> sources;
    for (const Stored& weight : weights) sources.push_back(weight.source());
    std::vector<Weight> loaded(weights.size());
    backend.load(loaded, sources);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      SCOPED_TRACE(std::string(name_of(weights[i].format)) + " number " + std::to_string(i));
      const std::vector<std::byte> ordered = read_weight(sources[i]);
      const Stored& w = weights[i];
      const Weight packed = backend.pack({w.format, w.count, w.rows, w.cols, ordered});
      EXPECT_EQ(loaded[i].layout, packed.layout);
      EXPECT_EQ(loaded[i].rows, w.rows);
      EXPECT_TRUE(content(backend, loaded[i]) == content(backend, packed));
      if (backend.relayout(loaded[i])) continue;
      EXPECT_TRUE(content(backend, loaded[i]) == ordered);
    }
  }
};

TEST_P(LoadWeights, GivesTheBytesThatPackingGives) {
  std::vector<Stored> weights;
  for (const WeightFormat format : all_formats) {
    weights.push_back(stored(format, 1, 37, 512, 0, 1));
    weights.push_back(stored(format, 3, 20, 256, 0, 2));
  }
  expect_same_as_packed(weights);
}

TEST_P(LoadWeights, PutsRowsInTheDecodersOrder) {
  std::vector<Stored> weights;
  for (const WeightFormat format : all_formats) {
    weights.push_back(stored(format, 3, 20, 256, /*alternating=*/20, 3));
    weights.push_back(stored(format, 1, 24, 512, /*alternating=*/8, 4));
  }
  expect_same_as_packed(weights);
}

TEST_P(LoadWeights, TakesWeightsOfManyPieces) {
  // Larger than a piece of 4 MiB, with rows that pieces cannot divide evenly.
  expect_same_as_packed({stored(WeightFormat::bf16, 1, 3001, 2048, 0, 5),
                         stored(WeightFormat::mxfp4, 5, 1442, 2880, /*alternating=*/1442, 6),
                         stored(WeightFormat::q8_0, 1, 3001, 2048, 0, 7),
                         stored(WeightFormat::q8_0, 1, 4096, 2048, /*alternating=*/128, 10)});
}

TEST_P(LoadWeights, KeepsMxfp4AsStoredWhereAScaleIsTooLarge) {
  Stored large = stored(WeightFormat::mxfp4, 2, 33, 512, 0, 8);
  large.bytes[17 * 100] = std::byte{200};  // 2^73
  expect_same_as_packed({stored(WeightFormat::mxfp4, 1, 40, 512, 0, 9), large});
}

TEST_P(LoadWeights, ThrowsWhatReadingThrows) {
  WeightSource source = stored(WeightFormat::bf16, 1, 3001, 2048, 0, 5).source();
  source.read = [](std::int64_t first, std::span<std::byte> to) {
    if (first + static_cast<std::int64_t>(to.size() / 4096) > 2900)
      fail(ErrorKind::corrupt, "the file ends here");
  };
  std::vector<Weight> loaded(1);
  EXPECT_THROW(device.backend().load(loaded, std::span(&source, 1)), Error);
}

INSTANTIATE_TEST_SUITE_P(Ops, LoadWeights, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
