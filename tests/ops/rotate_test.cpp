// rotate_and_store: each of its three parts alone (normalize, rotate, store), then all together.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

struct Case {
  int heads = 4, kv_heads = 2, head_dim = 64;
  int half = 0;  // rotated pairs of each head; 0: an empty table
  bool qk_norm = false;
  int tokens = 7;
  std::optional<CacheTypes> cache = {};  // nullopt: what the backend prefers
};

constexpr int position_count = 50;
constexpr int block_size = 4;
constexpr int cache_rows = 30 * block_size;

// Cosines, then sines, of arbitrary angles, with a norm above 1, because YaRN scales them.
HostMatrix rope_table(int half) {
  HostMatrix table = random_matrix(position_count, 2 * half, 3.0, 51);
  for (int p = 0; p < position_count; ++p) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(half); ++i) {
      const double angle = table.row(p)[i];
      table.row(p)[i] = 1.1 * std::cos(angle);
      table.row(p)[static_cast<std::size_t>(half) + i] = 1.1 * std::sin(angle);
    }
  }
  return table;
}

// Of an FP8 cache, one for each key head.
HostMatrix scales_of(int heads) {
  HostMatrix scales(1, heads);
  for (std::size_t h = 0; h < scales.values.size(); ++h) {
    scales.values[h] = static_cast<double>(0.01f * static_cast<float>(h * h + 1));
  }
  return scales;
}

class RotateAndStore : public BackendTest {
 protected:
  void expect_agreement(const Case& c);
  void expect_stored(Matrix cache, const HostMatrix& expected, const std::vector<std::int32_t>& slots);
  HostMatrix as_stored(HostMatrix rows, DType type, const HostMatrix& scales, int head_dim);
};

// The numbers that a cache of blocks or of FP8 holds for these rows; of FP8 without the scale of each head.
HostMatrix RotateAndStore::as_stored(HostMatrix rows, DType type, const HostMatrix& scales, int head_dim) {
  if (type != DType::q8_0 && type != DType::f8_e4m3) return rows;
  for (int r = 0; r < rows.rows && type == DType::f8_e4m3; ++r) {
    for (std::size_t i = 0; i < rows.row(r).size(); ++i) {
      rows.row(r)[i] /= scales.values[i / static_cast<std::size_t>(head_dim)];
    }
  }
  device.upload(rows, type);
  return rows;
}

// The slots contain the new rows; every other row is still poison.
void RotateAndStore::expect_stored(Matrix cache, const HostMatrix& expected,
                                   const std::vector<std::int32_t>& slots) {
  const HostMatrix stored = device.download(cache);
  HostMatrix found(expected.rows, expected.cols);
  int untouched = 0;
  for (int r = 0; r < cache.rows; ++r) {
    const auto row = stored.row(r);
    const auto slot = std::find(slots.begin(), slots.end(), r);
    if (slot != slots.end()) {
      std::copy(row.begin(), row.end(), found.row(static_cast<int>(slot - slots.begin())).begin());
    } else {
      untouched += std::all_of(row.begin(), row.end(), [](double value) { return std::isnan(value); });
    }
  }
  EXPECT_EQ(untouched, cache.rows - expected.rows) << "rows outside these sequences were written";
  const double tolerance =
      std::max(relative_tolerance(device.activations()), relative_tolerance(cache.dtype));
  EXPECT_TRUE(agrees(found, expected, tolerance));
}

// The expected qkv: Q and K normalized, then rotated; V unchanged.
HostMatrix rotated(HostMatrix qkv, const Case& c, const HostMatrix& table, const HostMatrix (&gains)[2],
                   const std::vector<std::int32_t>& positions) {
  const auto dim = static_cast<std::size_t>(c.head_dim), half = static_cast<std::size_t>(c.half);
  for (int r = 0; r < qkv.rows; ++r) {
    for (int head = 0; head < c.heads + c.kv_heads; ++head) {
      const std::span<double> values = qkv.row(r).subspan(static_cast<std::size_t>(head) * dim, dim);
      const HostMatrix& gain = gains[head < c.heads ? 0 : 1];
      if (c.qk_norm) {
        reference::norm(values, {.kind = NormKind::rms, .epsilon = 1e-6, .gain = gain.values, .bias = {}});
      }
      if (c.half == 0) continue;
      const auto angles = table.row(positions[static_cast<std::size_t>(r)]);
      reference::rotate(values, angles.first(half), angles.subspan(half));
    }
  }
  return qkv;
}

// Columns from `first` of each row.
HostMatrix columns(const HostMatrix& from, int first, int count) {
  HostMatrix part(from.rows, count);
  for (int r = 0; r < from.rows; ++r) {
    const auto row = from.row(r).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    std::copy(row.begin(), row.end(), part.row(r).begin());
  }
  return part;
}

void RotateAndStore::expect_agreement(const Case& c) {
  SCOPED_TRACE(testing::Message() << "heads " << c.heads << "/" << c.kv_heads << " of " << c.head_dim
                                  << ", half " << c.half << (c.qk_norm ? ", normalized" : "") << ", tokens "
                                  << c.tokens);
  const int q_cols = c.heads * c.head_dim, kv_cols = c.kv_heads * c.head_dim;
  HostMatrix input = random_matrix(c.tokens, q_cols + 2 * kv_cols, 2.0, 52);
  HostMatrix table = rope_table(c.half);
  HostMatrix gains[2] = {random_matrix(1, c.head_dim, 1.0, 53), random_matrix(1, c.head_dim, 1.0, 54)};
  std::vector<std::int32_t> positions, slots = shuffled(cache_rows, 55);
  slots.resize(static_cast<std::size_t>(c.tokens));
  std::vector<std::int32_t> starts = {0}, lengths;
  for (int r = 0; r < c.tokens; ++r) {  // each token is the last one of a separate sequence
    positions.push_back((r * 17 + 3) % position_count);
    lengths.push_back(positions.back() + 1);
    starts.push_back(r + 1);
  }
  const std::vector<std::int32_t> blocks(static_cast<std::size_t>(c.tokens) * 13);

  const Matrix qkv = device.upload(input, device.activations());
  const DType own = device.backend().cache_type();
  const CacheTypes types = c.cache.value_or(CacheTypes{own, own});
  const KvLayer cache = {device.poisoned(cache_rows, kv_cols, types.keys),
                         device.poisoned(cache_rows, kv_cols, types.values)};
  const KvGroup group = {.slots = device.upload(slots), .block_table = device.upload(blocks, 13)};
  const StepInputs step = {.tokens = device.upload(positions),
                           .positions = device.upload(positions),
                           .query_start = device.upload(starts),
                           .context_len = device.upload(lengths),
                           .logit_rows = device.upload(std::vector<std::int32_t>{0}),
                           .groups = {group},
                           .block_size = block_size};
  const AttentionSpec spec = {
      .heads = c.heads, .kv_heads = c.kv_heads, .head_dim = c.head_dim, .scale = 0.1f, .qk_norm = c.qk_norm};
  AttentionWeights weights;
  weights.norm_epsilon = 1e-6f;
  HostMatrix scales = scales_of(c.kv_heads);
  if (types.keys == DType::f8_e4m3) weights.key_scales = device.upload(scales, DType::f32);
  if (types.values == DType::f8_e4m3) weights.value_scales = device.upload(scales, DType::f32);
  if (c.qk_norm) {
    weights.q_norm = device.upload(gains[0], DType::f32);
    weights.k_norm = device.upload(gains[1], DType::f32);
  }
  const Matrix table_matrix = c.half > 0 ? device.upload(table, DType::f32) : Matrix{};
  device.backend().rotate_and_store(
      qkv, table_matrix, {.spec = spec, .weights = weights, .step = step, .group = group, .cache = cache});

  const HostMatrix expected = rotated(input, c, table, gains, positions);
  const HostMatrix found = device.download(qkv);
  EXPECT_TRUE(agrees(columns(found, 0, q_cols + kv_cols), columns(expected, 0, q_cols + kv_cols),
                     relative_tolerance(device.activations())));
  EXPECT_EQ(columns(found, q_cols + kv_cols, kv_cols).values,
            columns(input, q_cols + kv_cols, kv_cols).values);
  const auto stored = [&](int first, DType type) {
    return as_stored(columns(expected, first, kv_cols), type, scales, c.head_dim);
  };
  expect_stored(cache.keys, stored(q_cols, types.keys), slots);
  expect_stored(cache.values, stored(q_cols + kv_cols, types.values), slots);
}

TEST_P(RotateAndStore, OnlyStoresWhenNothingRotates) {
  for (const int tokens : {1, 7, 33}) expect_agreement({.tokens = tokens});
}

// Without arithmetic before them, blocks and FP8 are those of the reference to the last bit: 448 times the
// smallest scale is less than the largest values, which saturate.
TEST_P(RotateAndStore, RoundsToEveryTypeOfCacheThatTheBackendTakes) {
  int taken = 0;
  for (const DType keys : {DType::f32, DType::f16, DType::bf16, DType::q8_0, DType::f8_e4m3}) {
    for (const DType values : {keys, DType::f16, DType::f8_e4m3}) {
      for (const int head_dim : {32, 64, 96, 80, 7, 33}) {
        const CacheTypes types = {keys, values};
        if (device.backend().refuses_cache({.heads = 4, .kv_heads = 2, .head_dim = head_dim}, types))
          continue;
        ++taken;
        for (const int tokens : {1, 33}) {
          expect_agreement({.head_dim = head_dim, .tokens = tokens, .cache = types});
        }
      }
    }
  }
  EXPECT_GT(taken, 0);
}

TEST_P(RotateAndStore, OnlyNormalizesHeadsWithoutATable) {
  for (const int tokens : {1, 7, 33}) expect_agreement({.qk_norm = true, .tokens = tokens});
}

TEST_P(RotateAndStore, RotatesWholeHeads) {
  for (const int head_dim : {32, 48, 64, 80, 128}) {
    for (const int tokens : {1, 7, 33}) {
      expect_agreement({.head_dim = head_dim, .half = head_dim / 2, .tokens = tokens});
    }
  }
}

TEST_P(RotateAndStore, RotatesTheStartOfEachHead) {
  expect_agreement({.head_dim = 64, .half = 16});
  expect_agreement({.head_dim = 80, .half = 16});
  expect_agreement({.head_dim = 48, .half = 3});
  expect_agreement({.heads = 1, .kv_heads = 1, .head_dim = 32, .half = 1, .tokens = 1});
}

TEST_P(RotateAndStore, NormalizesAndThenRotates) {
  expect_agreement({.heads = 8, .kv_heads = 1, .head_dim = 128, .half = 64, .qk_norm = true});
  expect_agreement({.heads = 9, .kv_heads = 3, .head_dim = 128, .half = 64, .qk_norm = true, .tokens = 33});
  expect_agreement({.heads = 30, .kv_heads = 5, .head_dim = 64, .half = 32, .qk_norm = true, .tokens = 33});
  expect_agreement({.heads = 3, .kv_heads = 3, .head_dim = 80, .half = 10, .qk_norm = true, .tokens = 33});
  expect_agreement({.heads = 6, .kv_heads = 2, .head_dim = 48, .half = 24, .qk_norm = true, .tokens = 1});
}

INSTANTIATE_TEST_SUITE_P(Ops, RotateAndStore, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
