// One step of a whole decoder on the CPU backend, with random weights in the shapes of Qwen2.5-0.5B: decoding
// one token against a context, and a prompt of 512. "share" is the part of the memory bandwidth
// measured in this process that reading every weight once needs.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "backend/cpu/cpu_backend.h"
#include "backend/cpu/host.h"
#include "base/thread_pool.h"
#include "tensor/random_weight.h"

namespace inferno {
namespace {

struct Shape {
  int width = 896, layers = 24, heads = 14, kv_heads = 2, head_dim = 64, hidden = 4864, vocab = 151936;
};

class Step {
 public:
  Step(WeightFormat format, int tokens, int context, int threads)
      : backend_(make_cpu_backend(threads)), format_(format), tokens_(tokens) {
    attention_.heads = shape_.heads;
    attention_.kv_heads = shape_.kv_heads;
    attention_.head_dim = shape_.head_dim;
    attention_.scale = 1.0f / std::sqrt(static_cast<float>(shape_.head_dim));
    const int qkv_width = (shape_.heads + 2 * shape_.kv_heads) * shape_.head_dim;
    norm_ = {NormKind::rms, 1e-6f, floats(1, shape_.width), {}};
    qkv_bias_ = floats(1, qkv_width);
    for (int layer = 0; layer < shape_.layers; ++layer) {
      layers_.push_back({weight(qkv_width, shape_.width),
                         weight(shape_.width, shape_.heads * shape_.head_dim),
                         weight(2 * shape_.hidden, shape_.width), weight(shape_.width, shape_.hidden)});
      const int kv = shape_.kv_heads * shape_.head_dim;
      cache_.push_back({floats(context + block_size, kv), floats(context + block_size, kv)});
    }
    embedding_ = weight(shape_.vocab, shape_.width);
    rope_ = floats(context + 1, shape_.head_dim);
    residual_ = floats(tokens, shape_.width), normed_ = floats(tokens, shape_.width);
    branch_ = floats(tokens, shape_.width), qkv_ = floats(tokens, qkv_width);
    attended_ = floats(tokens, shape_.heads * shape_.head_dim);
    wide_ = floats(tokens, 2 * shape_.hidden), activated_ = floats(tokens, shape_.hidden);
    last_ = floats(1, shape_.width), logits_ = floats(1, shape_.vocab);
    place(context);
  }

  std::size_t weight_bytes() const { return bytes_; }

  void run() {
    backend_->embed(residual_, *embedding_, inputs_.tokens, 1.0f);
    Matrix delta;
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      const Layer& layer = layers_[i];
      const AttentionCall call = {attention_, {}, inputs_, inputs_.groups[0], cache_[i]};
      backend_->add_norm(normed_, residual_, delta, 1.0f, norm_);
      delta = branch_;
      backend_->linear(qkv_, normed_, {{layer.qkv}, qkv_bias_});
      backend_->rotate_and_store(qkv_, rope_, call);
      backend_->attend(attended_, qkv_, call);
      backend_->linear(branch_, attended_, {{layer.out}, {}});
      backend_->add_norm(normed_, residual_, branch_, 1.0f, norm_);
      backend_->linear(wide_, normed_, {{layer.up}, {}});
      backend_->activate(activated_, wide_, {Activation::silu, true, 0.0f});
      backend_->linear(branch_, activated_, {{layer.down}, {}});
    }
    backend_->add_norm(normed_, residual_, branch_, 1.0f, norm_);
    backend_->take_rows(last_, normed_, inputs_.logit_rows);
    backend_->linear(logits_, last_, {{embedding_}, {}});
  }

 private:
  static constexpr int block_size = 16;
  struct Layer {
    const Weight *qkv, *out, *up, *down;
  };

  Matrix floats(int rows, int cols) {
    const Matrix m = zeros(rows, cols, DType::f32);
    auto* values = reinterpret_cast<float*>(m.data);
    for (std::int64_t i = 0; i < std::int64_t{rows} * cols; ++i) {
      values[i] = static_cast<float>(i * 7919 % 1009) * 0.002f - 1.0f;
    }
    return m;
  }
  Matrix zeros(int rows, int cols, DType type) {
    Matrix m = {nullptr, type, rows, cols};
    memory_.push_back(backend_->allocate(m.bytes(), "bench"));
    m.data = memory_.back().data();
    return m;
  }
  Matrix indices(const std::vector<std::int32_t>& values, int rows) {
    const Matrix m = zeros(rows, static_cast<int>(values.size()) / rows, DType::i32);
    std::memcpy(m.data, values.data(), m.bytes());
    return m;
  }
  const Weight* weight(int rows, int cols) {
    std::vector<std::byte> stored(static_cast<std::size_t>(rows) *
                                  bytes_for(format_, static_cast<std::size_t>(cols)));
    fill_random(format_, stored, 0.03f, 1);
    weights_.push_back(backend_->pack({format_, 1, rows, cols, stored}));
    bytes_ += stored.size();
    return &weights_.back();
  }
  // The last `tokens` of `context` positions.
  void place(int context) {
    std::vector<std::int32_t> positions(static_cast<std::size_t>(tokens_));
    std::iota(positions.begin(), positions.end(), context - tokens_);
    std::vector<std::int32_t> blocks(static_cast<std::size_t>((context + block_size - 1) / block_size));
    std::iota(blocks.begin(), blocks.end(), 0);
    inputs_.tokens = indices(std::vector<std::int32_t>(positions.size(), 77), tokens_);
    inputs_.positions = indices(positions, tokens_);
    inputs_.query_start = indices({0, tokens_}, 2);
    inputs_.context_len = indices({context}, 1);
    inputs_.logit_rows = indices({tokens_ - 1}, 1);
    inputs_.groups = {{indices(positions, tokens_), indices(blocks, 1)}};
    inputs_.block_size = block_size;
  }

  Shape shape_;
  std::unique_ptr<Backend> backend_;
  WeightFormat format_;
  int tokens_;
  std::size_t bytes_ = 0;
  AttentionSpec attention_;
  Norm norm_;
  std::vector<Layer> layers_;
  std::vector<KvLayer> cache_;
  const Weight* embedding_ = nullptr;
  StepInputs inputs_;
  Matrix qkv_bias_, rope_, residual_, normed_, branch_, qkv_, attended_, wide_, activated_, last_, logits_;
  std::deque<Buffer> memory_;
  std::deque<Weight> weights_;
};

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

void run(benchmark::State& state, WeightFormat format, int tokens, int context) {
  Step step(format, tokens, context, 0);
  step.run();
  for (auto _ : state) step.run();
  state.counters["tok/s"] = benchmark::Counter(tokens, benchmark::Counter::kIsIterationInvariantRate);
  if (tokens == 1) {
    state.counters["share"] = benchmark::Counter(static_cast<double>(step.weight_bytes()) / bandwidth(),
                                                 benchmark::Counter::kIsIterationInvariantRate);
  }
}

}  // namespace
}  // namespace inferno

int main(int argc, char** argv) {
  using namespace inferno;
  benchmark::Initialize(&argc, argv);
  bandwidth();
  for (const WeightFormat format : {WeightFormat::q8_0, WeightFormat::q4_0, WeightFormat::q5_0,
                                    WeightFormat::mxfp4, WeightFormat::bf16, WeightFormat::f16}) {
    for (const auto& [tokens, context] :
         {std::pair{1, 128}, std::pair{1, 4096}, std::pair{8, 128}, std::pair{512, 512}}) {
      const std::string name =
          fmt::format("qwen2.5-0.5b/{}/tokens:{}/context:{}", name_of(format), tokens, context);
      benchmark::RegisterBenchmark(name.c_str(),
                                   [=](benchmark::State& state) { run(state, format, tokens, context); })
          ->UseRealTime()
          ->Unit(benchmark::kMillisecond);
    }
  }
  benchmark::RunSpecifiedBenchmarks();
}
