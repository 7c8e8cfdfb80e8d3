// A backend that forwards all calls to another one; a test overrides the calls that it observes or changes.
#pragma once

#include <memory>
#include <utility>

#include "backend/backend.h"

namespace inferno::testing {

class ForwardingBackend : public Backend {
 public:
  explicit ForwardingBackend(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}

  DeviceInfo info() const override { return inner_->info(); }
  DType activation_type() const override { return inner_->activation_type(); }
  DType cache_type() const override { return inner_->cache_type(); }
  std::optional<Advice> refuses_cache(const AttentionSpec& spec, CacheTypes types) const override {
    return inner_->refuses_cache(spec, types);
  }
  std::optional<std::string> refuses(const BlockSpec& block, WeightFormat format) const override {
    return inner_->refuses(block, format);
  }
  std::uint64_t workspace_bytes(const ModelSpec& spec, std::span<const WeightShape> weights,
                                const Workload& largest) const override {
    return inner_->workspace_bytes(spec, weights, largest);
  }
  std::string kernel_for(const Operation& operation, int tokens) const override {
    return inner_->kernel_for(operation, tokens);
  }
  Weight weight_without_memory(const WeightShape& shape) const override {
    return inner_->weight_without_memory(shape);
  }
  double read_bandwidth() override { return inner_->read_bandwidth(); }
  void show_profiler(const std::function<void()>& body) override { inner_->show_profiler(body); }
  std::optional<std::string> refuses_determinism() override { return inner_->refuses_determinism(); }
  Buffer allocate(std::size_t bytes, std::string_view purpose) override {
    return inner_->allocate(bytes, purpose);
  }
  Weight pack(const HostWeight& source) override { return inner_->pack(source); }
  void load(std::span<Weight> to, std::span<const WeightSource> from) override { inner_->load(to, from); }
  std::optional<Relayout> relayout(const Weight& weight) const override { return inner_->relayout(weight); }
  void prepare(const ModelSpec& spec, const Workload& largest) override { inner_->prepare(spec, largest); }
  void upload(Matrix to, std::span<const std::byte> from) override { inner_->upload(to, from); }
  void download(std::span<std::byte> to, Matrix from) override { inner_->download(to, from); }
  StepRows step_rows() const override { return inner_->step_rows(); }
  bool queues() const override { return inner_->queues(); }
  Buffer allocate_for_host(std::size_t bytes, std::string_view purpose) override {
    return inner_->allocate_for_host(bytes, purpose);
  }
  std::uint64_t mark() override { return inner_->mark(); }
  void wait_for(std::uint64_t mark) override { inner_->wait_for(mark); }
  void replay(std::span<const std::uint64_t> key, const std::function<void()>& body) override {
    inner_->replay(key, body);
  }
  ReplayCounts replay_counts() const override { return inner_->replay_counts(); }
  std::unique_ptr<StepTimer> make_step_timer() override { return inner_->make_step_timer(); }
  void embed(Matrix out, const Weight& table, Matrix tokens, float scale) override {
    inner_->embed(out, table, tokens, scale);
  }
  void add_positions(Matrix x, const Weight& table, Matrix positions) override {
    inner_->add_positions(x, table, positions);
  }
  void add_norm(Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) override {
    inner_->add_norm(out, residual, delta, scale, norm);
  }
  void linear(Matrix out, NormedRows in, const Linear& weights) override {
    inner_->linear(out, std::move(in), weights);
  }
  void rotate_and_store(Matrix qkv, Matrix rope_table, const AttentionCall& call) override {
    inner_->rotate_and_store(qkv, rope_table, call);
  }
  void attend(Matrix out, Matrix qkv, const AttentionCall& call) override { inner_->attend(out, qkv, call); }
  void activate(Matrix out, Matrix in, const ActivationSpec& activation) override {
    inner_->activate(out, in, activation);
  }
  void linear_activated(Matrix out, Matrix wide, NormedRows in, const Linear& weights,
                        const ActivationSpec& activation) override {
    inner_->linear_activated(out, wide, std::move(in), weights, activation);
  }
  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) override {
    inner_->mix_experts(out, in, spec, weights);
  }
  NormedRows linear_add_norm(const AfterBranch& then, Matrix in, const Linear& weights) override {
    return inner_->linear_add_norm(then, in, weights);
  }
  NormedRows mix_experts_add_norm(const AfterBranch& then, NormedRows in, const MoeMlp& spec,
                                  const MoeWeights& weights) override {
    return inner_->mix_experts_add_norm(then, std::move(in), spec, weights);
  }
  Matrix finish_norm(NormedRows in) override { return inner_->finish_norm(std::move(in)); }
  void rotate_and_attend(Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call) override {
    inner_->rotate_and_attend(out, qkv, rope_table, call);
  }
  void take_rows(Matrix out, NormedRows in, Matrix rows) override {
    inner_->take_rows(out, std::move(in), rows);
  }
  void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) override {
    inner_->sample(out, logits, inputs);
  }

 protected:
  Backend& inner() { return *inner_; }

 private:
  std::unique_ptr<Backend> inner_;
};

}  // namespace inferno::testing
