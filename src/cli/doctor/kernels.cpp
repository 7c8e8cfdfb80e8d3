#include "cli/doctor/kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>

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
  void add(const std::string& what, const std::function<std::string(int tokens)>& name_for) {
    const auto has_it = [&](const Line& line) {
      return std::ranges::find(line.what, what) != line.what.end();
    };
    if (std::ranges::any_of(lines_, has_it)) return;
    std::string kernels = by_tokens(name_for);
    auto line = std::ranges::find(lines_, kernels, &Line::kernels);
    if (line == lines_.end()) line = lines_.insert(line, {std::move(kernels), {}});
    line->what.push_back(what);
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
};

void add(Lines& lines, const Backend& backend, const Linear& weights) {
  for (const Weight* weight : weights.parts) {
    const WeightShape shape = {weight->format, weight->count, weight->rows, weight->cols};
    lines.add(fmt::format("{} {} x {}", name_of(shape.format), shape.rows, shape.cols),
              [&](int tokens) { return backend.kernel_for(shape, tokens); });
  }
}

void add(Lines& lines, const Backend& backend, const MoeMlp& spec, const MoeWeights& weights) {
  const Weight& down = *weights.down.parts.front();
  const WeightShape shape = {down.format, down.count, down.rows, down.cols};
  lines.add(fmt::format("{} {} of {} experts, {} x {}", name_of(shape.format), spec.active, spec.experts,
                        shape.rows, shape.cols),
            [&](int tokens) { return backend.kernel_for_experts(spec, shape, tokens); });
}

}  // namespace

std::string describe_kernels(const Backend& backend) {
  constexpr int side = 4096;
  Lines lines;
  for (const WeightFormat format : all_formats) {
    lines.add(std::string(name_of(format)),
              [&](int tokens) { return backend.kernel_for({format, 1, side, side}, tokens); });
  }
  return fmt::format("{}: products with a matrix of {} x {}\n{}", backend.info().name, side, side,
                     lines.text());
}

std::string describe_kernels(const Backend& backend, const ModelSpec& spec, const ModelWeights& weights) {
  Lines lines;
  for (std::size_t i = 0; i < weights.blocks.size(); ++i) {
    const BlockWeights& block = weights.blocks[i];
    add(lines, backend, block.qkv);
    add(lines, backend, block.attention_out);
    if (const auto* dense = std::get_if<DenseWeights>(&block.mlp)) {
      add(lines, backend, dense->up);
      add(lines, backend, dense->down);
    } else {
      add(lines, backend, std::get<MoeMlp>(spec.blocks[i].mlp), std::get<MoeWeights>(block.mlp));
    }
  }
  add(lines, backend, weights.head);
  return lines.text();
}

}  // namespace inferno::doctor
