#include "model/decoder.h"

#include <algorithm>

#include "base/error.h"
#include "model/rope.h"
#include "spec/window_groups.h"

namespace inferno {
namespace {

// The widest row each activation needs over all blocks.
struct Widths {
  int qkv = 0, attended = 0, wide = 0, hidden = 0;
  bool parallel = false, experts = false;

  explicit Widths(const ModelSpec& spec) {
    for (const BlockSpec& block : spec.blocks) {
      const AttentionSpec& a = block.attention;
      qkv = std::max(qkv, (a.heads + 2 * a.kv_heads) * a.head_dim);
      attended = std::max(attended, a.heads * a.head_dim);
      parallel = parallel || block.parallel;
      if (const auto* dense = std::get_if<DenseMlp>(&block.mlp)) {
        wide = std::max(wide, dense->hidden * (dense->activation.gated ? 2 : 1));
        hidden = std::max(hidden, dense->hidden);
      } else {
        experts = true;
      }
    }
  }
};

// Elements of one token's activations: those that products read, in the backend's type, and those that only
// elementwise operations read, in float.
struct RowElements {
  std::size_t narrow = 0, wide = 0;
  explicit RowElements(const ModelSpec& spec) {
    const Widths widths(spec);
    const auto width = static_cast<std::size_t>(spec.width);
    narrow = width + static_cast<std::size_t>(widths.attended) + static_cast<std::size_t>(widths.hidden);
    wide = width * (2u + (widths.parallel ? 1u : 0u) + (widths.experts ? 1u : 0u)) +
           static_cast<std::size_t>(widths.qkv) + static_cast<std::size_t>(widths.wide);
  }
};

int rotated_dims(const ModelSpec& spec) {
  const auto* rope = std::get_if<Rope>(&spec.positions);
  return rope == nullptr ? 0 : rope->dims;
}

}  // namespace

std::size_t activation_bytes(const ModelSpec& spec, const DecoderLimits& limits, DType type) {
  const auto tokens = static_cast<std::size_t>(limits.max_tokens);
  const auto rows = static_cast<std::size_t>(limits.max_logit_rows);
  const auto width = static_cast<std::size_t>(spec.width);
  const RowElements elements(spec);
  const std::size_t wide = tokens * elements.wide + rows * static_cast<std::size_t>(spec.vocab);
  const std::size_t table =
      static_cast<std::size_t>(limits.context) * static_cast<std::size_t>(rotated_dims(spec));
  return bytes_for(type, tokens * elements.narrow + rows * width) + (wide + table) * sizeof(float);
}

Decoder::Decoder(ModelSpec spec, ModelWeights weights, Backend& backend, DecoderLimits limits)
    : spec_(std::move(spec)),
      weights_(std::move(weights)),
      backend_(backend),
      limits_(limits),
      group_of_layer_(group_of_layer(spec_)) {
  allocate_activations();
  if (const auto* rope = std::get_if<Rope>(&spec_.positions)) {
    const std::vector<float> table = rope_table(*rope, limits_.context);
    memory_.push_back(backend_.allocate(table.size() * sizeof(float), "rotary table"));
    rope_table_ = {memory_.back().data(), DType::f32, limits_.context, rope->dims};
    backend_.upload(rope_table_, std::as_bytes(std::span(table)));
  }
  backend_.prepare(
      spec_,
      {.tokens = limits_.max_tokens, .logit_rows = limits_.max_logit_rows, .context = limits_.context});
}

void Decoder::allocate_activations() {
  const auto matrix = [&](DType type, int rows, int cols) {
    Matrix m = {nullptr, type, rows, cols};
    if (cols > 0) m.data = memory_.emplace_back(backend_.allocate(m.bytes(), "activations")).data();
    return m;
  };
  const auto wide = [&](int rows, int cols) { return matrix(DType::f32, rows, cols); };
  const auto activation = [&](int rows, int cols) { return matrix(backend_.activation_type(), rows, cols); };
  const Widths widths(spec_);
  const int tokens = limits_.max_tokens;
  // Only what products read is rounded to the backend's type. The residual stream, what is added to it, what
  // routers read and the logits never are.
  residual_ = wide(tokens, spec_.width);
  branch_ = wide(tokens, spec_.width);
  mlp_branch_ = wide(tokens, widths.parallel ? spec_.width : 0);
  routed_ = wide(tokens, widths.experts ? spec_.width : 0);
  qkv_ = wide(tokens, widths.qkv);
  wide_ = wide(tokens, widths.wide);
  normed_ = activation(tokens, spec_.width);
  attended_ = activation(tokens, widths.attended);
  activated_ = activation(tokens, widths.hidden);
  last_ = activation(limits_.max_logit_rows, spec_.width);
  logits_ = matrix(DType::f32, limits_.max_logit_rows, spec_.vocab);
}

Matrix Decoder::forward(const StepInputs& step, std::span<const KvLayer> cache) {
  const int tokens = step.tokens.rows;
  expects(tokens <= limits_.max_tokens && step.logit_rows.rows <= limits_.max_logit_rows, "the step fits");
  // Long steps rarely have the same length twice, and their kernels run longer than it takes to queue them.
  // Steps with prompts rarely recur, and would drive the graphs of decodes out.
  constexpr int worth_replaying = 64;
  if (tokens > worth_replaying || step.decodes < step.context_len.rows) {
    queue(step, cache);
  } else {
    backend_.replay(replay_key(step, cache), [&] { queue(step, cache); });
  }
  return logits_.top(step.logit_rows.rows);
}

// Everything a recorded step depends on: its shapes, and the addresses of its inputs and its cache. Decoders
// differ in their activations' address.
std::span<const std::uint64_t> Decoder::replay_key(const StepInputs& step, std::span<const KvLayer> cache) {
  std::vector<std::uint64_t>& key = replay_key_;
  key.clear();
  const auto add = [&key](const Matrix& matrix) {
    key.push_back(reinterpret_cast<std::uintptr_t>(matrix.data));
    key.push_back(static_cast<std::uint64_t>(matrix.rows) << 32 | static_cast<std::uint32_t>(matrix.cols));
  };
  add(residual_);
  for (const Matrix& input :
       {step.tokens, step.positions, step.query_start, step.context_len, step.logit_rows}) {
    add(input);
  }
  key.push_back(static_cast<std::uint64_t>(step.block_size) << 32 | static_cast<std::uint32_t>(step.decodes));
  for (const KvGroup& group : step.groups) {
    add(group.slots);
    add(group.block_table);
  }
  for (const KvLayer& layer : cache) {
    add(layer.keys);
    add(layer.values);
  }
  return key;
}

void Decoder::queue(const StepInputs& step, std::span<const KvLayer> cache) {
  const int tokens = step.tokens.rows;
  const Matrix residual = residual_.top(tokens);
  backend_.embed(residual, *weights_.embedding, step.tokens, spec_.embedding_scale);
  std::visit([&](const auto& positions) { place(positions, step); }, spec_.positions);
  backend_.add_norm(normed_.top(tokens), residual, {}, spec_.residual_scale, norm_before(0));
  NormedRows normed = normed_.top(tokens);
  for (std::size_t layer = 0; layer < spec_.blocks.size(); ++layer) {
    normed = block(layer, step, cache[layer], std::move(normed));
  }
  if (step.logit_rows.rows == 0) return;
  const Matrix logits = logits_.top(step.logit_rows.rows);
  if (tokens == 1) {  // the only row is the one wanted
    return backend_.linear(logits, std::move(normed), weights_.head);
  }
  const Matrix wanted = last_.top(step.logit_rows.rows);
  backend_.take_rows(wanted, std::move(normed), step.logit_rows);
  backend_.linear(logits, wanted, weights_.head);
}

NormedRows Decoder::block(std::size_t layer, const StepInputs& step, KvLayer cache, NormedRows normed) {
  const BlockSpec& spec = spec_.blocks[layer];
  if (!spec.parallel) {
    const Matrix attended = attention(layer, step, cache, std::move(normed));
    return std::visit([&](const auto& mlp) { return serial_block(mlp, layer, attended); }, spec.mlp);
  }
  const Matrix rows = backend_.finish_norm(std::move(normed));  // attention and the MLP both read them
  const Matrix attended = attention(layer, step, cache, rows);
  return std::visit([&](const auto& mlp) { return parallel_block(mlp, layer, attended, rows); }, spec.mlp);
}

const Norm& Decoder::norm_before(std::size_t layer) const {
  return layer < weights_.blocks.size() ? weights_.blocks[layer].attention_norm : weights_.final_norm;
}

// Attention has read norm(residual); the MLP reads norm(residual + attention).
NormedRows Decoder::serial_block(const DenseMlp& spec, std::size_t layer, Matrix attended) {
  const BlockWeights& weights = weights_.blocks[layer];
  const auto& dense = std::get<DenseWeights>(weights.mlp);
  AfterBranch then = {.out = normed_.top(attended.rows),
                      .residual = residual_.top(attended.rows),
                      .branch = branch_.top(attended.rows),
                      .scale = spec_.residual_scale,
                      .norm = &weights.mlp_norm};
  NormedRows normed = backend_.linear_add_norm(then, attended, weights.attention_out);
  const Matrix activated = widen(spec, dense, std::move(normed));
  then.norm = &norm_before(layer + 1);
  return backend_.linear_add_norm(then, activated, dense.down);
}

NormedRows Decoder::serial_block(const MoeMlp& spec, std::size_t layer, Matrix attended) {
  const BlockWeights& weights = weights_.blocks[layer];
  const auto& experts = std::get<MoeWeights>(weights.mlp);
  AfterBranch then = {.out = routed_.top(attended.rows),
                      .residual = residual_.top(attended.rows),
                      .branch = branch_.top(attended.rows),
                      .scale = spec_.residual_scale,
                      .norm = &weights.mlp_norm,
                      .router = &experts.router};
  NormedRows routed = backend_.linear_add_norm(then, attended, weights.attention_out);
  then.out = normed_.top(attended.rows);
  then.norm = &norm_before(layer + 1);
  then.router = nullptr;
  return backend_.mix_experts_add_norm(then, std::move(routed), spec, experts);
}

// Attention and the MLP read the same norm(residual).
NormedRows Decoder::parallel_block(const DenseMlp& spec, std::size_t layer, Matrix attended, Matrix normed) {
  const BlockWeights& weights = weights_.blocks[layer];
  const auto& dense = std::get<DenseWeights>(weights.mlp);
  const Matrix residual = residual_.top(attended.rows), branch = branch_.top(attended.rows);
  const Matrix out = mlp_branch_.top(attended.rows);
  backend_.linear(branch, attended, weights.attention_out);
  backend_.add_norm({}, residual, branch, spec_.residual_scale, {});
  backend_.linear(out, widen(spec, dense, normed), dense.down);
  backend_.add_norm(normed, residual, out, spec_.residual_scale, norm_before(layer + 1));
  return normed;
}

NormedRows Decoder::parallel_block(const MoeMlp& spec, std::size_t layer, Matrix attended, Matrix normed) {
  const BlockWeights& weights = weights_.blocks[layer];
  const Matrix residual = residual_.top(attended.rows), branch = branch_.top(attended.rows);
  const Matrix routed = routed_.top(attended.rows), out = mlp_branch_.top(attended.rows);
  backend_.linear(branch, attended, weights.attention_out);
  backend_.add_norm(routed, residual, {}, spec_.residual_scale, weights.attention_norm);
  backend_.add_norm({}, residual, branch, spec_.residual_scale, {});
  backend_.mix_experts(out, routed, spec, std::get<MoeWeights>(weights.mlp));
  backend_.add_norm(normed, residual, out, spec_.residual_scale, norm_before(layer + 1));
  return normed;
}

void Decoder::place(const LearnedPositions&, const StepInputs& step) {
  backend_.add_positions(residual_.top(step.tokens.rows), *weights_.positions, step.positions);
}

Matrix Decoder::attention(std::size_t layer, const StepInputs& step, KvLayer cache, NormedRows normed) {
  const int tokens = step.tokens.rows;
  const AttentionSpec& spec = spec_.blocks[layer].attention;
  const BlockWeights& weights = weights_.blocks[layer];
  // Blocks may differ in width, so each gets rows exactly as wide as it needs.
  const Matrix qkv = qkv_.reshaped(tokens, (spec.heads + 2 * spec.kv_heads) * spec.head_dim);
  const Matrix attended = attended_.reshaped(tokens, spec.heads * spec.head_dim);
  const AttentionCall call = {spec, weights.attention, step, step.groups[group_of_layer_[layer]], cache};
  backend_.linear(qkv, std::move(normed), weights.qkv);
  backend_.rotate_and_attend(attended, qkv, rope_table_, call);
  return attended;
}

Matrix Decoder::widen(const DenseMlp& spec, const DenseWeights& weights, NormedRows normed) {
  const int tokens = normed.unfinished().rows;
  const Matrix wide = wide_.reshaped(tokens, spec.hidden * (spec.activation.gated ? 2 : 1));
  const Matrix activated = activated_.reshaped(tokens, spec.hidden);
  backend_.linear_activated(activated, wide, std::move(normed), weights.up, spec.activation);
  return activated;
}

}  // namespace inferno
