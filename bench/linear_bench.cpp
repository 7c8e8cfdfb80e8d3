// Matrix products of the CPU backend, for each weight format, with one token (bound by memory) and with many
// (bound by arithmetic). "share" is of the bandwidth measured in this process, best of one thread and all.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/host.h"
#include "base/thread_pool.h"
#include "tensor/random_weight.h"

namespace inferno {
namespace {

constexpr std::size_t weight_bytes = std::size_t{384} << 20;  // larger than every cache
constexpr int cols = 4096;

double bandwidth() {
  static const double best = [] {
    const std::size_t bytes = std::size_t{1} << 30;
    const double one = cpu::read_bandwidth(1, bytes), all = cpu::read_bandwidth(0, bytes);
    fmt::print("reading memory: {:.1f} GB/s with one thread, {:.1f} GB/s with {}\n", one / 1e9, all / 1e9,
               usable_cores());
    return std::max(one, all);
  }();
  return best;
}

struct Case {
  WeightFormat format;
  int tokens;
  cpu::IsaLevel level;
};

void run(benchmark::State& state, const Case& what) {
  const auto backend = make_cpu_backend(0, what.level);
  const std::size_t row_bytes = bytes_for(what.format, cols);
  const std::size_t wanted = what.tokens > 16 ? weight_bytes / 32 : weight_bytes;
  const auto rows = static_cast<int>(wanted / row_bytes);
  std::vector<std::byte> stored(static_cast<std::size_t>(rows) * row_bytes);
  fill_random(what.format, stored, 1.0f, 1);
  const Weight weight = backend->pack({what.format, 1, rows, cols, stored});
  stored = {};
  const auto matrix = [&](std::vector<Buffer>& memory, int count, int width) {
    Matrix m = {nullptr, DType::f32, count, width};
    memory.push_back(backend->allocate(m.bytes(), "bench"));
    m.data = memory.back().data();
    return m;
  };
  std::vector<Buffer> memory;
  const Matrix in = matrix(memory, what.tokens, cols), out = matrix(memory, what.tokens, rows);
  for (int i = 0; i < what.tokens * cols; ++i) {
    reinterpret_cast<float*>(in.data)[i] = static_cast<float>(i * 7919 % 1000) * 0.002f - 1.0f;
  }
  for (auto _ : state) backend->linear(out, in, {{&weight}, {}});
  const auto bytes = static_cast<double>(rows) * static_cast<double>(row_bytes);
  const double flops = 2.0 * rows * cols * what.tokens;
  state.counters["GB/s"] = benchmark::Counter(bytes / 1e9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["share"] =
      benchmark::Counter(bytes / bandwidth(), benchmark::Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = benchmark::Counter(flops / 1e9, benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const cpu::IsaLevel level : cpu::all_levels) {
    if (!cpu::can_run(level)) continue;
    for (const WeightFormat format : all_formats) {
      for (const int tokens : {1, 4, 8, 64, 512}) {
        const std::string name = fmt::format("linear/{}/{}/{}", cpu::name_of(level), name_of(format), tokens);
        benchmark::RegisterBenchmark(name.c_str(),
                                     [=](benchmark::State& state) { run(state, {format, tokens, level}); })
            ->UseRealTime()
            ->Unit(benchmark::kMillisecond);
      }
    }
  }
}

}  // namespace
}  // namespace inferno

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  inferno::bandwidth();
  inferno::register_all();
  benchmark::RunSpecifiedBenchmarks();
}
