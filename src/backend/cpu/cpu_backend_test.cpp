#include "backend/cpu/cpu_backend.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <string>

#include "backend/cpu/scene.h"
#include "base/error.h"
#include "base/system_memory.h"

namespace inferno::cpu {
namespace {

class CpuAtLevel : public testing::TestWithParam<IsaLevel> {};

TEST_P(CpuAtLevel, EmbedsRowsOfEveryFormat) {
  Scene scene(GetParam());
  for (const WeightFormat format : all_formats) {
    const int cols = block_elements(format) == 1 ? 45 : 3 * block_elements(format);
    const Weight& table = scene.random_weight(format, 41, cols);
    const Matrix tokens = scene.indices({40, 0, 17, 17}, 4);
    const Matrix out = scene.zeros(4, cols);
    scene.backend->embed(out, table, tokens, 2.5f);
    std::vector<double> expected;
    for (int t = 0; t < 4; ++t) {
      for (int c = 0; c < cols; ++c) {
        const auto at = static_cast<std::size_t>(integers(tokens)[t] * cols + c);
        expected.push_back(2.5 * static_cast<double>(scene.values(table)[at]));
      }
    }
    EXPECT_LT(relative_error(out, expected), 1e-6) << inferno::name_of(format);
  }
}

TEST_P(CpuAtLevel, AddsPositionsToRows) {
  Scene scene(GetParam());
  const Weight& table = scene.random_weight(WeightFormat::f16, 20, 50);
  const Matrix x = scene.random(3, 50);
  std::vector<double> expected = values_of(x);
  const std::vector<std::int32_t> positions = {19, 3, 4};
  for (std::size_t i = 0; i < expected.size(); ++i) {
    expected[i] +=
        static_cast<double>(scene.values(table)[static_cast<std::size_t>(positions[i / 50]) * 50 + i % 50]);
  }
  scene.backend->add_positions(x, table, scene.indices(positions, 3));
  EXPECT_LT(relative_error(x, expected), 1e-6);
}

TEST_P(CpuAtLevel, NormalizesWhatItAdded) {
  Scene scene(GetParam());
  for (const NormKind kind : {NormKind::rms, NormKind::layer}) {
    for (const int width : {1, 15, 16, 64, 131}) {
      const Matrix residual = scene.random(5, width), delta = scene.random(5, width);
      const Matrix out = scene.zeros(5, width);
      const Norm norm = {kind, 1e-5f, scene.random(1, width),
                         kind == NormKind::layer ? scene.random(1, width) : Matrix{}};
      std::vector<double> sums = values_of(residual), normed;
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += 0.5 * values_of(delta)[i];
      for (int r = 0; r < 5; ++r) {
        double mean = 0.0, square = 0.0;
        const double* row = sums.data() + r * width;
        for (int c = 0; c < width; ++c) mean += row[c] / width;
        if (kind == NormKind::rms) mean = 0.0;
        for (int c = 0; c < width; ++c) square += (row[c] - mean) * (row[c] - mean) / width;
        for (int c = 0; c < width; ++c) {
          const double bias = norm.bias ? static_cast<double>(floats(norm.bias)[c]) : 0.0;
          normed.push_back(
              (row[c] - mean) / std::sqrt(square + 1e-5) * static_cast<double>(floats(norm.gain)[c]) + bias);
        }
      }
      scene.backend->add_norm(out, residual, delta, 0.5f, norm);
      EXPECT_LT(relative_error(residual, sums), 1e-6);
      EXPECT_LT(relative_error(out, normed), width == 1 ? 1e-4 : 2e-6) << "width " << width;
    }
  }
}

TEST_P(CpuAtLevel, AddsWithoutNormalizingAndNormalizesWithoutAdding) {
  Scene scene(GetParam());
  const Matrix residual = scene.random(2, 40), delta = scene.random(2, 40), out = scene.zeros(2, 40);
  const Norm norm = {NormKind::rms, 1e-5f, scene.random(1, 40), {}};
  std::vector<double> sums = values_of(residual);
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += values_of(delta)[i];
  scene.backend->add_norm({}, residual, delta, 1.0f, norm);
  EXPECT_LT(relative_error(residual, sums), 1e-6);
  scene.backend->add_norm(out, residual, {}, 1.0f, norm);
  EXPECT_LT(relative_error(residual, sums), 1e-6);
  EXPECT_NE(floats(out)[7], 0.0f);
}

double activated(double gate, double up, const ActivationSpec& spec) {
  switch (spec.kind) {
    case Activation::swiglu_clamped: {
      const double limit = static_cast<double>(spec.limit), g = std::min(gate, limit);
      return g / (1.0 + std::exp(-1.702 * g)) * (std::clamp(up, -limit, limit) + 1.0);
    }
    case Activation::gelu_tanh:
      gate *=
          0.5 * (1.0 + std::tanh(std::sqrt(2.0 / 3.14159265358979) * (gate + 0.044715 * gate * gate * gate)));
      break;
    case Activation::gelu_erf: gate *= 0.5 * (1.0 + std::erf(gate / std::sqrt(2.0))); break;
    case Activation::relu: gate = std::max(gate, 0.0); break;
    case Activation::silu: gate /= 1.0 + std::exp(-gate); break;
  }
  return spec.gated ? gate * up : gate;
}

TEST_P(CpuAtLevel, ActivatesGatedAndPlainRows) {
  Scene scene(GetParam());
  for (const Activation kind : {Activation::silu, Activation::gelu_tanh, Activation::gelu_erf,
                                Activation::relu, Activation::swiglu_clamped}) {
    for (const bool gated : {true, false}) {
      if (kind == Activation::swiglu_clamped && !gated) continue;
      const ActivationSpec spec = {kind, gated, 7.0f};
      const int hidden = 75;
      const Matrix in = scene.random(3, gated ? 2 * hidden : hidden, 4.0f), out = scene.zeros(3, hidden);
      floats(in)[0] = -200.0f;  // far where exp overflows
      floats(in)[1] = 200.0f;
      std::vector<double> expected;
      for (int r = 0; r < 3; ++r) {
        for (int i = 0; i < hidden; ++i) {
          const auto gate = static_cast<double>(floats(in, r)[i]);
          expected.push_back(
              activated(gate, gated ? static_cast<double>(floats(in, r)[hidden + i]) : 0.0, spec));
        }
      }
      scene.backend->activate(out, in, spec);
      EXPECT_LT(relative_error(out, expected), 1e-6) << static_cast<int>(kind) << gated;
    }
  }
}

TEST_P(CpuAtLevel, TakesRows) {
  Scene scene(GetParam());
  const Matrix in = scene.random(4, 9), out = scene.zeros(2, 9);
  scene.backend->take_rows(out, in, scene.indices({3, 1}, 2));
  EXPECT_EQ(floats(out)[0], floats(in, 3)[0]);
  EXPECT_EQ(floats(out, 1)[8], floats(in, 1)[8]);
}

INSTANTIATE_TEST_SUITE_P(Cpu, CpuAtLevel, testing::ValuesIn(levels_here()), level_name);

TEST(CpuBackend, NamesItselfAndItsKernels) {
  const auto backend = make_cpu_backend(1);
  EXPECT_FALSE(backend->info().name.empty());
  EXPECT_EQ(backend->info().kernels, name_of(best_level()));
  EXPECT_GT(backend->info().total_bytes, 0u);
  const auto kernel_for = [&](WeightFormat format, int tokens) {
    const Weight weight = backend->weight_without_memory({format, 1, 256, 256});
    const Linear weights = {.parts = {&weight}, .bias = {}};
    return backend->kernel_for(LinearOperation{weights}, tokens);
  };
  if (best_level() == IsaLevel::portable) {
    EXPECT_EQ(kernel_for(WeightFormat::q8_0, 1), "portable, float32");
    return;
  }
  const std::string level(name_of(best_level()));
  EXPECT_TRUE(kernel_for(WeightFormat::q8_0, 1).starts_with(level + ", int16 activations, 16 rows x "));
  const std::string bf16 = best_level() == IsaLevel::amx ? "activations of two bf16 terms" : "float32";
  EXPECT_TRUE(kernel_for(WeightFormat::bf16, 1).starts_with(level + ", " + bf16 + ", 16 rows x "));
  EXPECT_TRUE(kernel_for(WeightFormat::f16, 1).starts_with(level + ", float32, 16 rows x "));
  EXPECT_TRUE(kernel_for(WeightFormat::i8, 1).starts_with(level + ", decoded to float32, 16 rows x "));
  EXPECT_NE(kernel_for(WeightFormat::bf16, 1), kernel_for(WeightFormat::bf16, 64));
}

TEST(CpuBackend, RefusesAWeightThatIsNotWholeBlocks) {
  const auto backend = make_cpu_backend(1);
  try {
    backend->pack({WeightFormat::q4_k, 1, 4, 100, {}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("q4_k"), std::string::npos);
  }
}

// Bytes that /proc/self/status has in a field, such as "VmRSS".
std::optional<std::uint64_t> status_of_process(const std::string& field) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field + ":")) return std::stoull(line.substr(field.size() + 1)) * 1024;
  }
  return std::nullopt;
}

TEST(CpuBackend, LoadsAWeightWithoutHoldingItTwice) {
  const auto backend = make_cpu_backend(2);
  const WeightSource source = {
      .format = WeightFormat::q8_0,
      .rows = 32768,
      .cols = 2048,
      .read = [](std::int64_t, std::span<std::byte> to) { std::ranges::fill(to, std::byte{1}); }};
  std::ofstream reset("/proc/self/clear_refs");
  reset << 5 << std::flush;  // the peak is now what the process has
  const auto before = status_of_process("VmRSS");
  if (!reset || !before) GTEST_SKIP() << "this kernel does not reset the peak of a process";
  Weight weight;
  backend->load({&weight, 1}, {&source, 1});
  ASSERT_EQ(weight.memory.size(), source.bytes());
  const std::uint64_t peak = status_of_process("VmHWM").value() - *before;
  EXPECT_GE(peak, source.bytes() / 2);
  EXPECT_LE(peak, source.bytes() * 3 / 2);
}

TEST(CpuBackend, RefusesMoreMemoryThanThereIsAndSaysWhatFor) {
  const auto backend = make_cpu_backend(1);
  try {
    backend->allocate(system_memory().total * 4, "the cache of a test");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_NE(std::string(error.what()).find("the cache of a test"), std::string::npos);
  }
}

TEST(CpuBackend, RefusesHeadsThatDoNotDivide) {
  const auto backend = make_cpu_backend(1);
  BlockSpec block;
  block.attention.heads = 5;
  block.attention.kv_heads = 2;
  block.attention.head_dim = 64;
  EXPECT_TRUE(backend->refuses(block, WeightFormat::f32).has_value());
  block.attention.heads = 6;
  EXPECT_FALSE(backend->refuses(block, WeightFormat::f32).has_value());
}

TEST(NoCuda, SaysWhyThereIsNone) {
  EXPECT_THROW(make_cuda_backend(0), Error);
}

}  // namespace
}  // namespace inferno::cpu
