#include "engine/watched_backend.h"

#include <chrono>
#include <limits>
#include <thread>

#include "base/error.h"

namespace inferno::testing {
namespace {

class WatchedBackend final : public Backend {
 public:
  explicit WatchedBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  DeviceInfo info() const override { return inner_->info(); }
  DType activation_type() const override { return inner_->activation_type(); }
  DType cache_type() const override { return inner_->cache_type(); }
  std::optional<std::string> refuses(const BlockSpec& block, WeightFormat format) const override {
    return inner_->refuses(block, format);
  }
  std::string kernel_for(WeightFormat format, int tokens) const override {
    return inner_->kernel_for(format, tokens);
  }
  std::optional<std::string> refuses_determinism() override {
    if (watch().has_determinism) return inner_->refuses_determinism();
    return "the watched backend adds numbers in any order";
  }
  Buffer allocate(std::size_t bytes, std::string_view purpose) override {
    ++watch().allocations;
    return inner_->allocate(bytes, purpose);
  }
  Weight pack(const HostWeight& source) override {
    ++watch().allocations;
    return inner_->pack(source);
  }
  void upload(Matrix to, std::span<const std::byte> from) override { inner_->upload(to, from); }
  void download(std::span<std::byte> to, Matrix from) override { inner_->download(to, from); }
  void embed(Matrix out, const Weight& table, Matrix tokens, float scale) override {
    std::this_thread::sleep_for(std::chrono::milliseconds(watch().step_milliseconds));
    inner_->embed(out, table, tokens, scale);
  }
  void add_positions(Matrix x, const Weight& table, Matrix positions) override {
    inner_->add_positions(x, table, positions);
  }
  void add_norm(Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) override {
    inner_->add_norm(out, residual, delta, scale, norm);
  }
  void linear(Matrix out, Matrix in, const Linear& weights) override {
    if (watch().device_fails) fail(ErrorKind::device, "the watched device fell off the bus");
    inner_->linear(out, in, weights);
  }
  void rotate_and_store(Matrix qkv, Matrix rope_table, const AttentionCall& call) override {
    inner_->rotate_and_store(qkv, rope_table, call);
  }
  void attend(Matrix out, Matrix qkv, const AttentionCall& call) override { inner_->attend(out, qkv, call); }
  void activate(Matrix out, Matrix in, const ActivationSpec& activation) override {
    inner_->activate(out, in, activation);
  }
  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) override {
    inner_->mix_experts(out, in, spec, weights);
  }
  void take_rows(Matrix out, Matrix in, Matrix rows) override { inner_->take_rows(out, in, rows); }
  void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) override {
    const auto* rows = reinterpret_cast<const SamplingRow*>(inputs.rows.data);
    for (int r = 0; r < logits.rows; ++r) {
      if (rows[r].top_k != poisoned_top_k) continue;
      reinterpret_cast<float*>(logits.data)[r * logits.cols + 3] = std::numeric_limits<float>::quiet_NaN();
    }
    inner_->sample(out, logits, inputs);
  }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace

Watch& watch() {
  static Watch one;
  return one;
}

std::unique_ptr<Backend> watched(std::unique_ptr<Backend> backend) {
  watch().allocations = 0;
  watch().device_fails = false;
  watch().has_determinism = true;
  watch().step_milliseconds = 0;
  return std::make_unique<WatchedBackend>(std::move(backend));
}

}  // namespace inferno::testing
