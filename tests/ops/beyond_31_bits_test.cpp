// Weights and caches of more than 2^31 elements: every index into them needs more than 31 bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "ops/backends.h"
#include "ops/reference.h"
#include "support/compare.h"
#include "tensor/format.h"
#include "tensor/random_weight.h"
#include "tolerance.h"

namespace inferno {
namespace {

constexpr std::int64_t limit = std::int64_t{1} << 31;

// Zeros except for the first and the last few rows.
class HugeWeight {
 public:
  static constexpr int cols = 2880, edge = 64;
  static constexpr int rows = static_cast<int>(limit / cols) + 1017;

  HugeWeight(Backend& backend, WeightFormat format) {
    std::vector<std::byte> content(bytes_for(format, std::size_t{rows} * cols));
    for (const int first : {0, rows - edge}) {
      const auto part = std::span(content).subspan(bytes_for(format, static_cast<std::size_t>(first) * cols),
                                                   bytes_for(format, std::size_t{edge} * cols));
      fill_random(format, part, 0.5f, static_cast<std::uint64_t>(first) + 1);
      std::vector<float> decoded(std::size_t{edge} * cols);
      decode(format, part, decoded);
      HostMatrix values(edge, cols);
      values.values.assign(decoded.begin(), decoded.end());
      edges.push_back(std::move(values));
    }
    packed = backend.pack({format, 1, rows, cols, content});
  }

  Weight packed;
  std::vector<HostMatrix> edges;  // first and last rows
};

class Beyond31Bits : public FormatTest {
 protected:
  std::vector<float> raw(Matrix matrix) {
    std::vector<float> out(matrix.bytes() / sizeof(float));
    device.backend().download(std::as_writable_bytes(std::span(out)), matrix);
    return out;
  }
};

TEST_P(Beyond31Bits, AWeightIsMultipliedAndLookedUpToItsLastRow) {
  constexpr int rows = HugeWeight::rows, edge = HugeWeight::edge;
  HugeWeight weight(device.backend(), format);
  Linear linear;
  linear.parts = {&weight.packed};
  for (const int tokens : {1, 5, 40}) {
    HostMatrix input = random_matrix(tokens, HugeWeight::cols, 1.0, 7);
    const Matrix out = device.poisoned(tokens, rows, DType::f32);
    device.backend().linear(out, device.upload(input, device.activations()), linear);
    const std::vector<float> found = raw(out);
    for (std::size_t side = 0; side < 2; ++side) {
      HostMatrix part(tokens, edge);
      for (int t = 0; t < tokens; ++t) {
        const auto begin = found.begin() + std::ptrdiff_t{t} * rows + (side == 0 ? 0 : rows - edge);
        std::copy(begin, begin + edge, part.row(t).begin());
      }
      EXPECT_TRUE(agrees(part, reference::linear(input, weight.edges[side], {}),
                         relative_tolerance(device.activations())))
          << tokens << " tokens, " << (side == 0 ? "first" : "last") << " rows";
    }
    EXPECT_TRUE(
        std::all_of(found.begin() + edge, found.begin() + rows - edge, [](float x) { return x == 0.0f; }));
  }
  const std::vector<std::int32_t> tokens = {0, rows - 1, rows / 2, rows - edge};
  const Matrix looked_up = device.poisoned(4, HugeWeight::cols, DType::f32);
  device.backend().embed(looked_up, weight.packed, device.upload(tokens), 1.0f);
  HostMatrix expected(4, HugeWeight::cols);
  std::ranges::copy(weight.edges[0].row(0), expected.row(0).begin());
  std::ranges::copy(weight.edges[1].row(edge - 1), expected.row(1).begin());
  std::ranges::copy(weight.edges[1].row(0), expected.row(3).begin());
  EXPECT_TRUE(agrees(device.download(looked_up), expected, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Ops, Beyond31Bits,
                         testing::Combine(testing::Values(backend_names().front()),
                                          testing::Values("bf16", "q8_0", "mxfp4")),
                         backend_and_format_test_name);

class HugeCache : public BackendTest {
 protected:
  static constexpr int heads = 16, kv_heads = 8, head_dim = 64, kv_cols = kv_heads * head_dim;
  static constexpr int block_size = 32, positions = 200;

  // Rotates and stores `positions` tokens starting at cache block `first`, then attends with all tokens and
  // with the last.
  std::vector<HostMatrix> run(int blocks, int first) {
    const AttentionSpec spec = {.heads = heads, .kv_heads = kv_heads, .head_dim = head_dim, .scale = 0.125f};
    const DType type = device.backend().cache_type();
    const Matrix shape = {nullptr, type, blocks * block_size, kv_cols};
    const Buffer keys = device.backend().allocate(shape.bytes(), "keys"),
                 values = device.backend().allocate(shape.bytes(), "values");
    const KvLayer cache = {{keys.data(), type, shape.rows, kv_cols},
                           {values.data(), type, shape.rows, kv_cols}};
    HostMatrix input = random_matrix(positions, (heads + 2 * kv_heads) * head_dim, 1.0, 52);
    HostMatrix table = random_matrix(positions, head_dim, 0.7, 51);
    const Matrix qkv = device.upload(input, DType::f32), rope = device.upload(table, DType::f32);
    const AttentionWeights weights;
    std::vector<HostMatrix> out;
    for (const int rows : {positions, 1}) {
      const StepInputs step = inputs(rows, first);
      const AttentionCall call = {
          .spec = spec, .weights = weights, .step = step, .group = step.groups[0], .cache = cache};
      Matrix some = qkv.top(rows);
      some.data += qkv.top(positions - rows).bytes();
      if (rows == positions) device.backend().rotate_and_store(some, rope, call);
      const Matrix attended = device.poisoned(rows, heads * head_dim, device.activations());
      device.backend().attend(attended, some, call);
      out.push_back(device.download(attended));
    }
    return out;
  }

 private:
  StepInputs inputs(int rows, int first) {
    std::vector<std::int32_t> places, slots, table;
    for (int p = positions - rows; p < positions; ++p) {
      places.push_back(p);
      slots.push_back(first * block_size + p);
    }
    for (int block = 0; block * block_size < positions; ++block) table.push_back(first + block);
    const auto columns = static_cast<int>(table.size());
    return {.tokens = device.upload(places),
            .positions = device.upload(places),
            .query_start = device.upload(std::vector<std::int32_t>{0, rows}),
            .context_len = device.upload(std::vector<std::int32_t>{positions}),
            .logit_rows = device.upload(std::vector<std::int32_t>{0}),
            .groups = {{.slots = device.upload(slots), .block_table = device.upload(table, columns)}},
            .block_size = block_size};
  }
};

TEST_P(HugeCache, IsWrittenAndReadToItsLastBlock) {
  constexpr int needed = (positions + block_size - 1) / block_size;
  constexpr int blocks = static_cast<int>(limit / kv_cols / block_size) + needed + 1;
  const std::vector<HostMatrix> expected = run(needed, 0), found = run(blocks, blocks - needed);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(found[i].values, expected[i].values);
    EXPECT_TRUE(std::ranges::any_of(found[i].values, [](double x) { return std::abs(x) > 0.01; }));
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, HugeCache, testing::Values(backend_names().front()), backend_test_name);

}  // namespace
}  // namespace inferno
