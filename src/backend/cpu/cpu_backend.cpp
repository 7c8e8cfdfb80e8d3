#include "backend/cpu/cpu_backend.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "backend/cpu/activation_tiles.h"
#include "backend/cpu/load.h"
#include "backend/cpu/memory.h"
#include "backend/cpu/operations.h"
#include "backend/cpu/panels.h"
#include "base/error.h"

namespace inferno {
namespace cpu {

std::int64_t grain_for(const ThreadPool& pool, std::int64_t count, std::int64_t cost) {
  constexpr std::int64_t min_elements = 8192;     // about a microsecond of work
  constexpr std::int64_t pieces_per_thread = 16;  // so that a slow thread hardly delays the others
  const std::int64_t balanced = count / (pool.threads() * pieces_per_thread);
  return std::max<std::int64_t>({1, balanced, min_elements / std::max<std::int64_t>(1, cost)});
}

namespace {

class CpuBackend final : public Backend {
 public:
  CpuBackend(int threads, IsaLevel level, const SystemRoots& roots)
      : level_(level),
        roots_(roots),
        kernels_(kernels_for(level)),
        pool_(threads),
        scratch_(pool_.threads()),
        weight_memory_(roots) {}

  DeviceInfo info() const override {
    const SystemMemory memory = system_memory(roots_);
    return {.name = cpu_name(),
            .kernels = std::string(name_of(level_)),
            .total_bytes = memory.limit.value_or(memory.total),
            .free_bytes = memory.obtainable,
            .threads = pool_.threads()};
  }
  DType activation_type() const override { return DType::f32; }
  DType cache_type() const override { return DType::f32; }
  std::optional<Advice> refuses_cache(const AttentionSpec& spec, CacheTypes types) const override {
    return refuses_head(types, spec.head_dim);
  }
  std::optional<std::string> refuses(const BlockSpec& block, WeightFormat format) const override;
  std::string kernel_for(const Operation& operation, int tokens) const override;
  std::uint64_t workspace_bytes(const ModelSpec& spec, std::span<const WeightShape> weights,
                                const Workload& largest) const override;
  std::optional<std::string> refuses_determinism() override { return std::nullopt; }  // always so

  Buffer allocate(std::size_t bytes, std::string_view purpose) override {
    return cpu::allocate(bytes, purpose, roots_);
  }
  Weight pack(const HostWeight& source) override;
  void load(std::span<Weight> to, std::span<const WeightSource> from) override;
  std::optional<Relayout> relayout(const Weight& weight) const override {
    if (kernels_ == nullptr || panel_shape(weight.format, weight.rows, weight.cols).block_bytes == 0)
      return {};
    return Relayout{"panels of 16 rows", "the kernels multiply 16 rows at a time"};
  }
  void upload(Matrix to, std::span<const std::byte> from) override {
    expects(from.size() <= to.bytes(), "upload fits its matrix");
    if (!from.empty()) std::memcpy(to.data, from.data(), from.size());
  }
  void download(std::span<std::byte> to, Matrix from) override {
    expects(to.size() <= from.bytes(), "download asks for no more than the matrix has");
    if (!to.empty()) std::memcpy(to.data(), from.data, to.size());
  }

  void embed(Matrix out, const Weight& table, Matrix tokens, float scale) override {
    cpu::embed(compute(), out, table, tokens, scale);
  }
  void add_positions(Matrix x, const Weight& table, Matrix positions) override {
    cpu::add_positions(compute(), x, table, positions);
  }
  void add_norm(Matrix out, Matrix residual, Matrix delta, float scale, const Norm& norm) override {
    cpu::add_norm(compute(), out, residual, delta, scale, norm);
  }
  void linear(Matrix out, NormedRows in, const Linear& weights) override {
    cpu::linear(compute(), out, in.complete(), weights);
  }
  void rotate_and_store(Matrix qkv, Matrix rope_table, const AttentionCall& call) override {
    cpu::rotate_and_store(compute(), qkv, rope_table, call);
  }
  void attend(Matrix out, Matrix qkv, const AttentionCall& call) override {
    cpu::attend(compute(), out, qkv, call);
  }
  void activate(Matrix out, Matrix in, const ActivationSpec& activation) override {
    cpu::activate(compute(), out, in, activation);
  }
  void mix_experts(Matrix out, Matrix in, const MoeMlp& spec, const MoeWeights& weights) override {
    cpu::mix_experts(compute(), out, in, spec, weights);
  }
  void take_rows(Matrix out, NormedRows in, Matrix rows) override {
    const Matrix from = in.complete();
    const std::size_t bytes = from.row_bytes();
    for (int r = 0; r < out.rows; ++r) {
      const auto row = static_cast<std::size_t>(*integers(rows, r));
      std::copy_n(from.data + row * bytes, bytes, out.data + static_cast<std::size_t>(r) * bytes);
    }
  }
  void sample(Matrix out, Matrix logits, const SamplingInputs& inputs) override {
    cpu::sample(compute(), out, logits, inputs);
  }

 private:
  std::string kernel_for(WeightFormat format, int tokens) const;
  Compute compute() { return {pool_, scratch_, kernels_}; }

  IsaLevel level_;
  SystemRoots roots_;
  const Kernels* kernels_;
  ThreadPool pool_;
  Scratch scratch_;
  Arena weight_memory_;
};

std::optional<std::string> CpuBackend::refuses(const BlockSpec& block, WeightFormat) const {
  const AttentionSpec& attention = block.attention;
  if (attention.head_dim <= 0 || attention.kv_heads <= 0 || attention.heads % attention.kv_heads != 0) {
    return fmt::format("{} query heads cannot share {} key heads of {} elements", attention.heads,
                       attention.kv_heads, attention.head_dim);
  }
  if (const auto* moe = std::get_if<MoeMlp>(&block.mlp)) {
    if (moe->active < 1 || moe->active > moe->experts) {
      return fmt::format("{} active of {} experts", moe->active, moe->experts);
    }
  }
  return std::nullopt;
}

Weight CpuBackend::pack(const HostWeight& source) {
  const WeightSource in_memory = {
      .format = source.format,
      .count = source.count,
      .rows = source.rows,
      .cols = source.cols,
      .column_order = {source.column_order.begin(), source.column_order.end()},
      .read = [&source](std::int64_t first, std::span<std::byte> to) {
        const std::size_t row_bytes = bytes_for(source.format, static_cast<std::size_t>(source.cols));
        const auto rows = static_cast<std::size_t>(source.count) * static_cast<std::size_t>(source.rows);
        expects(source.data.size() == rows * row_bytes, "a host weight has as many bytes as its shape says");
        std::ranges::copy(source.data.subspan(static_cast<std::size_t>(first) * row_bytes, to.size()),
                          to.begin());
      }};
  return load_weight(pool_, weight_memory_, in_memory, kernels_ != nullptr);
}

void CpuBackend::load(std::span<Weight> to, std::span<const WeightSource> from) {
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = load_weight(pool_, weight_memory_, from[i], kernels_ != nullptr);
  }
}

// Floats of mix_experts() for all its intermediate results.
std::size_t expert_floats(const MoeMlp& mlp, int width, int tokens) {
  const std::int64_t columns = std::int64_t{mlp.hidden} * (mlp.activation.gated ? 3 : 2) + width;
  return static_cast<std::size_t>(std::int64_t{tokens} * (mlp.experts + mlp.active * columns));
}

// Scratch keeps one piece for each use and each worker, so the largest request of every use counts.
std::uint64_t CpuBackend::workspace_bytes(const ModelSpec& spec, std::span<const WeightShape> weights,
                                          const Workload& largest) const {
  const int threads = pool_.threads();
  std::size_t own = 2 * static_cast<std::size_t>(spec.vocab);  // of sample()
  std::size_t attention = 0, experts = 0;
  std::size_t tiles[3] = {};  // by kind: a product whose parts differ needs several
  int active = 1;
  for (const BlockSpec& block : spec.blocks) {
    if (const auto* moe = std::get_if<MoeMlp>(&block.mlp)) {
      experts = std::max(experts, expert_floats(*moe, spec.width, largest.tokens));
      active = std::max(active, moe->active);
    }
    if (kernels_ == nullptr) {
      own = std::max(own, static_cast<std::size_t>(largest.context + block.attention.head_dim));
      continue;
    }
    const ScratchFloats need = attend_tiles_scratch(block.attention, threads, largest.context);
    own = std::max(own, need.own);
    attention = std::max(attention, need.shared);
  }
  for (const WeightShape& weight : weights) {
    own = std::max(own, 2 * static_cast<std::size_t>(weight.cols));
    if (kernels_ == nullptr) continue;
    const std::int64_t rows = std::int64_t{largest.tokens} * (weight.count > 1 ? active : 1);
    const ScratchFloats need = multiply_panels_scratch(*kernels_, weight, rows, weight.count);
    own = std::max(own, need.own);
    std::size_t& size = tiles[static_cast<int>(ActivationTiles::kind_for(*kernels_, weight.format))];
    size = std::max(size, need.shared);
  }
  const std::size_t floats =
      static_cast<std::size_t>(threads) * own + attention + experts + tiles[0] + tiles[1] + tiles[2];
  return floats * sizeof(float);
}

std::string CpuBackend::kernel_for(WeightFormat format, int tokens) const {
  if (kernels_ == nullptr) return "portable, float32";
  const auto kind = ActivationTiles::kind_for(*kernels_, format);
  const auto widths = ActivationTiles::widths(*kernels_, kind);
  const int width = tokens >= widths.back() ? widths.back() : *std::ranges::lower_bound(widths, tokens);
  const bool is_packed = panel_shape(format, 1, 1).block_bytes != 0;
  const char* arithmetic = kind == ActivationTiles::Kind::integers ? "int16 activations"
                           : kind == ActivationTiles::Kind::terms  ? "activations of two bf16 terms"
                           : is_packed                             ? "float32"
                                                                   : "decoded to float32";
  return fmt::format("{}, {}, 16 rows x {} tokens", name_of(level_), arithmetic, width);
}

// What follows a product does not change its kernel. Experts get as many tokens as choose them, at most all.
std::string CpuBackend::kernel_for(const Operation& operation, int tokens) const {
  if (std::holds_alternative<AttentionOperation>(operation)) {
    return fmt::format("{}, float32", name_of(level_));
  }
  std::vector<std::string> names;
  const auto add = [&](const Linear& weights) {
    for (const Weight* part : weights.parts) {
      std::string name = kernel_for(part->format, tokens);
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  };
  if (const auto* mix = std::get_if<MixExpertsOperation>(&operation)) {
    for (const Linear* weights : {&mix->weights.router, &mix->weights.gate_up, &mix->weights.down})
      add(*weights);
  } else if (const auto* linear = std::get_if<LinearOperation>(&operation)) {
    add(linear->weights);
  } else if (const auto* activated = std::get_if<LinearActivatedOperation>(&operation)) {
    add(activated->weights);
  } else {
    add(std::get<LinearAddNormOperation>(operation).weights);
  }
  return fmt::format("{}", fmt::join(names, " / "));
}

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(int threads, cpu::IsaLevel level, const SystemRoots& roots) {
  if (!cpu::can_run(level)) {
    fail(ErrorKind::unsupported, fmt::format("this CPU cannot run the {} kernels", cpu::name_of(level)),
         {.why = {}, .next = fmt::format("the best it has are {}", cpu::name_of(cpu::best_level()))});
  }
  return std::make_unique<cpu::CpuBackend>(threads, level, roots);
}

std::unique_ptr<Backend> make_cpu_backend(int threads) {
  return make_cpu_backend(threads, cpu::best_level());
}

}  // namespace inferno
