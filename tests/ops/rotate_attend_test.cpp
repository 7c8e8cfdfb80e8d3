// rotate_and_attend: what rotate_and_store and then attend compute, for one new token of each sequence and
// for such sequences beside prompts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "ops/backends.h"
#include "support/compare.h"
#include "tolerance.h"

namespace inferno {
namespace {

struct Case {
  AttentionSpec spec;
  std::vector<int> contexts = {1};  // of each sequence, including its new tokens
  int rotated = 64;
  std::vector<int> prompts = {};    // new tokens of the last sequences; all others have one
  std::optional<DType> cache = {};  // nullopt: what the backend prefers

  int rows_of(std::size_t sequence) const {
    const std::size_t decodes = contexts.size() - prompts.size();
    return sequence < decodes ? 1 : prompts[sequence - decodes];
  }
  int rows() const {
    int sum = 0;
    for (std::size_t s = 0; s < contexts.size(); ++s) sum += rows_of(s);
    return sum;
  }
};

struct Result {
  HostMatrix out, keys, values;
};

class Scene {
 public:
  Scene(Device& device, const Case& c) : device_(device), case_(c) {
    const AttentionSpec& spec = c.spec;
    const auto sequences = static_cast<int>(c.contexts.size());
    const int longest = std::ranges::max(c.contexts), kv = spec.kv_heads * spec.head_dim;
    blocks_each_ = (longest + block_size - 1) / block_size;
    qkv_ = random_matrix(c.rows(), spec.heads * spec.head_dim + 2 * kv, 1.0, 41);
    keys_ = random_matrix(sequences * blocks_each_ * block_size, kv, 1.0, 42);
    values_ = random_matrix(sequences * blocks_each_ * block_size, kv, 1.0, 43);
    q_norm_ = random_matrix(1, spec.head_dim, 1.0, 44);
    k_norm_ = random_matrix(1, spec.head_dim, 1.0, 45);
    sinks_ = random_matrix(1, spec.heads, 1.0, 46);
    scales_ = HostMatrix(1, spec.kv_heads);
    for (std::size_t h = 0; h < scales_.values.size(); ++h) {
      scales_.values[h] = 0.5 + 0.25 * static_cast<double>(h % 4);
    }
    table_ = HostMatrix(longest, c.rotated);
    for (int p = 0; p < longest; ++p) {
      for (int i = 0; i < c.rotated / 2; ++i) {
        const double angle = p * std::pow(10000.0, -2.0 * i / c.rotated);
        table_.row(p)[static_cast<std::size_t>(i)] = std::cos(angle);
        table_.row(p)[static_cast<std::size_t>(c.rotated / 2 + i)] = std::sin(angle);
      }
    }
  }

  Result run(bool at_once) {
    const AttentionSpec& spec = case_.spec;
    const auto sequences = static_cast<int>(case_.contexts.size());
    std::vector<std::int32_t> starts = {0}, positions, slots, lengths;
    const std::vector<std::int32_t> blocks = shuffled(sequences * blocks_each_, 47);
    for (std::size_t s = 0; s < case_.contexts.size(); ++s) {
      const int length = case_.contexts[s];
      for (int own = length - case_.rows_of(s); own < length; ++own) {
        positions.push_back(own);
        const auto entry =
            s * static_cast<std::size_t>(blocks_each_) + static_cast<std::size_t>(own / block_size);
        slots.push_back(blocks[entry] * block_size + own % block_size);
      }
      lengths.push_back(length);
      starts.push_back(static_cast<std::int32_t>(positions.size()));
    }
    StepInputs step;
    step.tokens = device_.upload(positions);
    step.positions = device_.upload(positions);
    step.query_start = device_.upload(starts);
    step.context_len = device_.upload(lengths);
    step.block_size = block_size;
    step.decodes = sequences - static_cast<int>(case_.prompts.size());
    const KvGroup group = {.slots = device_.upload(slots),
                           .block_table = device_.upload(blocks, blocks_each_)};
    const DType cache = case_.cache.value_or(device_.backend().cache_type());
    const bool is_scaled = cache == DType::f8_e4m3;
    const Matrix scales = is_scaled ? device_.upload(scales_, DType::f32) : Matrix{};
    HostMatrix keys = keys_, values = values_;
    const KvLayer layer = {device_.upload(keys, cache), device_.upload(values, cache)};
    const AttentionWeights weights = {.q_norm = device_.upload(q_norm_, DType::f32),
                                      .k_norm = device_.upload(k_norm_, DType::f32),
                                      .sinks = device_.upload(sinks_, DType::f32),
                                      .key_scales = scales,
                                      .value_scales = scales,
                                      .norm_epsilon = 1e-5f};
    const AttentionCall call = {spec, weights, step, group, layer};
    const Matrix qkv = device_.upload(qkv_, DType::f32);
    const Matrix table = case_.rotated == 0 ? Matrix{} : device_.upload(table_, DType::f32);
    const Matrix out = device_.poisoned(case_.rows(), spec.heads * spec.head_dim, device_.activations());
    if (at_once) {
      device_.backend().rotate_and_attend(out, qkv, table, call);
    } else {
      device_.backend().rotate_and_store(qkv, table, call);
      device_.backend().attend(out, qkv, call);
    }
    return {device_.download(out), device_.download(layer.keys), device_.download(layer.values)};
  }

 private:
  static constexpr int block_size = 16;
  Device& device_;
  Case case_;
  int blocks_each_ = 1;
  HostMatrix qkv_, keys_, values_, q_norm_, k_norm_, sinks_, scales_, table_;
};

void expect_agreement(Device& device, const Case& c) {
  SCOPED_TRACE(testing::Message() << c.spec.heads << " heads over " << c.spec.kv_heads << " of "
                                  << c.spec.head_dim << ", window " << c.spec.window << ", contexts from "
                                  << c.contexts.front());
  Scene scene(device, c);
  const Result plain = scene.run(false), found = scene.run(true);
  const double tolerance = relative_tolerance(device.activations());
  EXPECT_TRUE(agrees(found.out, plain.out, tolerance));
  EXPECT_TRUE(agrees(found.keys, plain.keys, tolerance / 10));
  EXPECT_TRUE(agrees(found.values, plain.values, tolerance / 10));
}

AttentionSpec spec(int heads, int kv_heads, int head_dim) {
  AttentionSpec out;
  out.heads = heads;
  out.kv_heads = kv_heads;
  out.head_dim = head_dim;
  out.scale = 1.0f / std::sqrt(static_cast<float>(head_dim));
  return out;
}

class RotateAndAttend : public BackendTest {};

TEST_P(RotateAndAttend, AgreesAtEveryLengthAroundATile) {
  for (const int context : {1, 2, 15, 16, 17, 31, 63, 64, 65, 127, 128, 129, 130, 255, 257, 1000, 2049}) {
    AttentionSpec shape = spec(16, 2, 64);
    expect_agreement(device, {.spec = shape, .contexts = {context}});
    shape.window = 128;
    shape.sinks = true;
    expect_agreement(device, {.spec = shape, .contexts = {context}});
  }
}

TEST_P(RotateAndAttend, AgreesForHeadsOfEveryGrouping) {
  for (const auto& [heads, kv_heads] : {std::pair{4, 4}, {14, 2}, {8, 1}, {12, 1}, {32, 8}, {6, 3}}) {
    for (const int head_dim : {64, 128, 80}) {
      AttentionSpec shape = spec(heads, kv_heads, head_dim);
      expect_agreement(device, {.spec = shape, .contexts = {300}});
      shape.qk_norm = true;
      expect_agreement(device, {.spec = shape, .contexts = {45}, .rotated = 32});
      expect_agreement(device, {.spec = shape, .contexts = {45}, .rotated = 0});
    }
  }
}

// Long enough that on a GPU several clusters share a context.
TEST_P(RotateAndAttend, AgreesForLongContexts) {
  AttentionSpec shape = spec(8, 1, 64);
  shape.sinks = true;
  expect_agreement(device, {.spec = shape, .contexts = {9000, 1, 4500}});
  expect_agreement(device, {.spec = spec(12, 2, 128), .contexts = {5000}, .rotated = 128});
}

TEST_P(RotateAndAttend, AgreesForSeveralSequences) {
  AttentionSpec shape = spec(16, 2, 64);
  shape.sinks = true;
  expect_agreement(device, {.spec = shape, .contexts = {1, 700, 128, 2, 333}});
  shape.window = 100;
  expect_agreement(device, {.spec = shape, .contexts = {1, 700, 128, 2, 333}});
}

// Decodes come first in a step. On a GPU they have a kernel of their own, also beside prompts.
TEST_P(RotateAndAttend, AgreesForMixedSteps) {
  for (const int head_dim : {64, 128, 80}) {
    AttentionSpec shape = spec(16, 2, head_dim);
    for (const int window : {0, 100}) {
      shape.window = window;
      shape.sinks = window > 0;
      const auto agree = [&](std::vector<int> contexts, std::vector<int> prompts) {
        expect_agreement(device,
                         {.spec = shape, .contexts = std::move(contexts), .prompts = std::move(prompts)});
      };
      agree({1, 700, 128, 2, 333, 300}, {300});        // a whole prompt
      agree({400, 17, 90, 260}, {5, 129});             // chunks, a small one among them
      agree({33, 250}, {2});                           // too few rows for tiles
      agree({33, 1, 64, 1, 1}, {64, 1, 1});            // prompts of one token behind others
      agree(std::vector<int>(70, 129), {40, 40, 40});  // more decodes than rows of prompts
    }
  }
}

TEST_P(RotateAndAttend, AgreesForEveryTypeOfCache) {
  for (const DType cache : {DType::f32, DType::f16, DType::q8_0, DType::f8_e4m3}) {
    for (const int head_dim : {64, 128}) {
      for (const bool normalizes : {false, true}) {
        AttentionSpec shape = spec(8, 2, head_dim);
        shape.qk_norm = normalizes;
        shape.sinks = normalizes;
        shape.window = normalizes ? 200 : 0;
        expect_agreement(device,
                         {.spec = shape, .contexts = {1, 40, 300}, .rotated = head_dim, .cache = cache});
        expect_agreement(device, {.spec = shape, .contexts = {2500}, .rotated = 32, .cache = cache});
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, RotateAndAttend, testing::ValuesIn(backend_names()), backend_test_name);

}  // namespace
}  // namespace inferno
