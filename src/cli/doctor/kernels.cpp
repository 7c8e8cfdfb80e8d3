#include "cli/doctor/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <set>
#include <vector>

#include "model/runner.h"

namespace inferno::doctor {
namespace {

constexpr int max_tokens = 4096;

// "1 token: stream; 2 to 64: grouped; more: gemm_hopper"
std::string by_tokens(const std::function<std::string(int tokens)>& name_for) {
  std::string out, name = name_for(1);
  for (int first = 1; first <= max_tokens;) {
    int end = first + 1;
    std::string next;
    while (end <= max_tokens && (next = name_for(end)) == name) ++end;
    const bool is_last = end > max_tokens;
    out += first == 1 && is_last ? name
           : is_last             ? fmt::format("more: {}", name)
           : end == first + 1    ? fmt::format("{} token{}: {}; ", first, first == 1 ? "" : "s", name)
                                 : fmt::format("{} to {}: {}; ", first, end - 1, name);
    name = std::move(next);
    first = end;
  }
  return out;
}

// One line for everything that has the same kernels.
class Lines {
 public:
  // `what` is added once for each `layout`.
  void add(const std::string& what, const std::string& layout,
           const std::function<std::string(int)>& name_for) {
    if (!seen_.insert(what + layout).second) return;
    std::string kernels = by_tokens(name_for);
    auto line = std::ranges::find(lines_, kernels, &Line::kernels);
    if (line == lines_.end()) line = lines_.insert(line, {std::move(kernels), {}});
    if (std::ranges::find(line->what, what) == line->what.end()) line->what.push_back(what);
  }
  std::string text() const {
    std::string out;
    for (const auto& [kernels, what] : lines_) {
      out += fmt::format("kernels: {}\n         {}\n", fmt::join(what, ", "), kernels);
    }
    return out;
  }

 private:
  struct Line {
    std::string kernels;
    std::vector<std::string> what;
  };
  std::vector<Line> lines_;
  std::set<std::string> seen_;
};

// "q4_k 4096 x 4096 + q6_k 1024 x 4096"
std::string shapes_of(const Linear& weights) {
  std::vector<std::string> parts;
  for (const Weight* part : weights.parts) {
    parts.push_back(fmt::format("{} {} x {}", name_of(part->format), part->rows, part->cols));
  }
  return fmt::format("{}", fmt::join(parts, " + "));
}

// A backend may pack weights of one shape in several ways, depending on their values.
std::string layouts_of(const Linear& weights) {
  std::string out;
  for (const Weight* part : weights.parts) out += fmt::format(" {}", part->layout);
  return out;
}

void add_attention(Lines& lines, const Backend& backend, const AttentionSpec& spec, int rope_cols) {
  AttentionOperation operation = {
      .spec = spec, .rope_cols = rope_cols, .block_size = BatchShape{}.block_size};
  const std::string what = fmt::format("attention {} x {}", spec.heads, spec.head_dim);
  lines.add(what + " (one sequence)", {}, [&](int tokens) { return backend.kernel_for(operation, tokens); });
  lines.add(what + " (one token for each sequence)", {}, [&](int tokens) {
    operation.sequences = tokens;
    return backend.kernel_for(operation, tokens);
  });
}

// The operations of a decoder, with the arguments that Decoder gives them.
class ModelKernels {
 public:
  ModelKernels(const Backend& backend, const ModelSpec& spec, const ModelWeights& weights)
      : backend_(backend), spec_(spec), weights_(weights) {}

  std::string text() {
    for (std::size_t layer = 0; layer < weights_.blocks.size(); ++layer) add_block(layer);
    add("head", weights_.head, LinearOperation{weights_.head});
    return lines_.text();
  }

 private:
  void add(std::string_view what, const Linear& weights, const Operation& operation) {
    lines_.add(fmt::format("{} {}", what, shapes_of(weights)), layouts_of(weights),
               [&](int tokens) { return backend_.kernel_for(operation, tokens); });
  }
  void add_block(std::size_t layer);
  void add_experts(const MixExpertsOperation& mix);

  const Backend& backend_;
  const ModelSpec& spec_;
  const ModelWeights& weights_;
  Lines lines_;
};

void ModelKernels::add_experts(const MixExpertsOperation& mix) {
  const MoeWeights& weights = mix.weights;
  std::string layouts;
  for (const Linear* each : {&weights.router, &weights.gate_up, &weights.down}) layouts += layouts_of(*each);
  if (mix.previous != nullptr) layouts += layouts_of(mix.previous->weights);
  lines_.add(fmt::format("{} of {} experts (router {}; up {}; down {})", mix.spec.active, mix.spec.experts,
                         shapes_of(weights.router), shapes_of(weights.gate_up), shapes_of(weights.down)),
             layouts, [&](int tokens) { return backend_.kernel_for(mix, tokens); });
}

void ModelKernels::add_block(std::size_t layer) {
  const BlockSpec& spec = spec_.blocks[layer];
  const BlockWeights& block = weights_.blocks[layer];
  const bool is_last = layer + 1 == weights_.blocks.size();
  const Norm& next = is_last ? weights_.final_norm : weights_.blocks[layer + 1].attention_norm;
  const auto* experts = std::get_if<MoeWeights>(&block.mlp);
  const LinearAddNormOperation joined = {.weights = block.attention_out,
                                         .norm = block.mlp_norm,
                                         .router = experts == nullptr ? nullptr : &experts->router};
  add("qkv", block.qkv, LinearOperation{block.qkv});
  const auto* rope = std::get_if<Rope>(&spec_.positions);
  add_attention(lines_, backend_, spec.attention, rope == nullptr ? 0 : rope->dims);
  add("attention out", block.attention_out,
      spec.parallel ? Operation(LinearOperation{block.attention_out}) : Operation(joined));
  if (experts != nullptr) {
    return add_experts({.spec = std::get<MoeMlp>(spec.mlp),
                        .weights = *experts,
                        .norm = spec.parallel ? nullptr : &next,
                        .previous = spec.parallel ? nullptr : &joined});
  }
  const auto& dense = std::get<DenseWeights>(block.mlp);
  add("up", dense.up, LinearActivatedOperation{dense.up, std::get<DenseMlp>(spec.mlp).activation});
  add("down", dense.down,
      spec.parallel ? Operation(LinearOperation{dense.down})
                    : Operation(LinearAddNormOperation{dense.down, next}));
}

// The operations of common models' blocks, for weights of every format.
class StandardKernels {
 public:
  explicit StandardKernels(const Backend& backend) : backend_(backend) {}

  std::string text() const {
    const Norm norm;
    const std::array sections = {
        Section{fmt::format("linear, {} x {}", width, width),
                products({width, width}, [](const Linear& weights) { return LinearOperation{weights}; })},
        Section{fmt::format("linear and silu, 2 x {} x {}", hidden, width),
                products({2 * hidden, width},
                         [](const Linear& weights) { return LinearActivatedOperation{weights, silu}; })},
        Section{fmt::format("linear, add and norm, {} x {}", width, hidden),
                products({width, hidden},
                         [&](const Linear& weights) { return LinearAddNormOperation{weights, norm}; })},
        experts(), attention()};
    std::string out =
        fmt::format("{}: kernels for common shapes; `inferno bench MODEL --verbose` lists those of a model\n",
                    backend_.info().name);
    for (std::size_t i = 0; i < sections.size(); ++i) {
      const bool is_like_next = i + 1 < sections.size() && sections[i].kernels == sections[i + 1].kernels;
      out += fmt::format("{}\n{}", sections[i].title, is_like_next ? "" : sections[i].kernels);
    }
    return out;
  }

 private:
  struct Section {  // titles of sections with the same kernels share a list
    std::string title, kernels;
  };
  struct Size {
    int rows = 0, cols = 0;
  };
  static constexpr int width = 4096, hidden = 14336;  // Llama 3 8B
  static constexpr ActivationSpec silu = {.kind = Activation::silu, .gated = true};

  Weight weight(WeightFormat format, int count, Size size) const {
    return backend_.weight_without_memory({format, count, size.rows, size.cols});
  }
  // Whether models with such weights can be loaded.
  bool is_supported(WeightFormat format) const {
    const AttentionSpec attention = {.heads = 32, .kv_heads = 8, .head_dim = 128};
    const BlockSpec block = {.attention = attention, .mlp = DenseMlp{.hidden = hidden, .activation = silu}};
    return !backend_.refuses(block, format);
  }
  std::string products(Size size, const std::function<Operation(const Linear&)>& operation) const {
    Lines lines;
    for (const WeightFormat format : all_formats) {
      if (!is_supported(format)) continue;
      const Weight part = weight(format, 1, size);
      const Linear weights = {.parts = {&part}, .bias = {}};
      lines.add(std::string(name_of(format)), {},
                [&](int tokens) { return backend_.kernel_for(operation(weights), tokens); });
    }
    return lines.text();
  }
  Section experts() const;
  Section attention() const;

  const Backend& backend_;
};

// Of Qwen3 30B-A3B: its router is f32, and what attention leaves has the format of the experts.
StandardKernels::Section StandardKernels::experts() const {
  constexpr int moe_width = 2048, attended = 4096;
  const MoeMlp spec = {.experts = 128, .active = 8, .hidden = 768, .activation = silu};
  const Norm norm;
  Lines lines;
  for (const WeightFormat format : all_formats) {
    if (!is_supported(format)) continue;
    const Weight router = weight(WeightFormat::f32, 1, {spec.experts, moe_width});
    const Weight up = weight(format, spec.experts, {2 * spec.hidden, moe_width});
    const Weight down = weight(format, spec.experts, {moe_width, spec.hidden});
    const Weight out = weight(format, 1, {moe_width, attended});
    const MoeWeights weights = {.router = {.parts = {&router}, .bias = {}},
                                .gate_up = {.parts = {&up}, .bias = {}},
                                .down = {.parts = {&down}, .bias = {}}};
    const Linear attention_out = {.parts = {&out}, .bias = {}};
    const LinearAddNormOperation previous = {attention_out, norm, &weights.router};
    const MixExpertsOperation mix = {spec, weights, &norm, &previous};
    lines.add(std::string(name_of(format)), {}, [&](int tokens) { return backend_.kernel_for(mix, tokens); });
  }
  return {fmt::format("router, {} of {} experts, add and norm, {} x {}", spec.active, spec.experts,
                      spec.hidden, moe_width),
          lines.text()};
}

StandardKernels::Section StandardKernels::attention() const {
  const AttentionSpec spec = {.heads = 32, .kv_heads = 8, .head_dim = 128};
  Lines lines;
  add_attention(lines, backend_, spec, spec.head_dim);
  return {"attention", lines.text()};
}

}  // namespace

std::string describe_kernels(const Backend& backend) {
  return StandardKernels(backend).text();
}

std::string describe_kernels(const Backend& backend, const ModelSpec& spec, const ModelWeights& weights) {
  return ModelKernels(backend, spec, weights).text();
}

}  // namespace inferno::doctor
