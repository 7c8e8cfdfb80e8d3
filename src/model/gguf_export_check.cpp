// Reads what is about to be written and compares it with where it came from.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "checkpoint/gguf/open_gguf.h"
#include "model/gguf_export.h"
#include "model/load.h"
#include "model/rope.h"
#include "model/tensor_plan.h"

namespace inferno {
namespace {

// The file before it exists: its header, and the bytes of small tensors. Weights read as zeros.
class Preview final : public ByteSource {
 public:
  explicit Preview(const OutgoingGguf& file) : bytes_(gguf_header(file)) {
    const std::vector<std::uint64_t> offsets = gguf_offsets(file);
    size_ = bytes_.size() + offsets.back();
    // Tensors of factors come first, and a loader reads nothing else.
    for (std::size_t i = 0; i < file.tensors.size() && file.tensors[i].name.starts_with("rope_f"); ++i) {
      file.tensors[i].write(
          [&](std::span<const std::byte> piece) { bytes_.insert(bytes_.end(), piece.begin(), piece.end()); });
      bytes_.resize(bytes_.size() + (offsets[i + 1] - offsets[i] - file.tensors[i].bytes()));
    }
  }

  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    expects(offset <= size_ && to.size() <= size_ - offset, "a preview is read within its bounds");
    const std::size_t there = offset < bytes_.size() ? std::min(to.size(), bytes_.size() - offset) : 0;
    if (there > 0) std::memcpy(to.data(), bytes_.data() + offset, there);
    std::fill(to.begin() + static_cast<std::ptrdiff_t>(there), to.end(), std::byte{0});
  }

 private:
  std::vector<std::byte> bytes_;
  std::uint64_t size_ = 0;
};

// Factors are stored as floats, so the last places of a frequency may differ.
bool nearly(double a, double b) {
  return std::abs(a - b) <= 1e-6 * std::max(std::abs(a), std::abs(b));
}

bool same_angles(const Rope& a, const Rope& b, int context) {
  const RopeFrequencies left = rope_frequencies(a, context), right = rope_frequencies(b, context);
  return nearly(left.attention_factor, right.attention_factor) &&
         std::equal(left.inverse.begin(), left.inverse.end(), right.inverse.begin(), right.inverse.end(),
                    nearly);
}

bool same_positions(const Positions& a, const Positions& b, int context) {
  if (a.index() != b.index()) return false;
  const auto* left = std::get_if<Rope>(&a);
  const auto* right = std::get_if<Rope>(&b);
  if (left == nullptr) return std::get<LearnedPositions>(a).count == std::get<LearnedPositions>(b).count;
  // LongRoPE has one set of factors for short contexts and one for long ones.
  return left->dims == right->dims && same_angles(*left, *right, 1) && same_angles(*left, *right, context);
}

std::vector<std::string> differences(const ModelSpec& a, const ModelSpec& b) {
  std::vector<std::string> out;
  const auto compare = [&](bool same, std::string_view what) {
    if (!same) out.emplace_back(what);
  };
  compare(a.vocab == b.vocab, "the size of the vocabulary");
  compare(a.width == b.width && a.blocks.size() == b.blocks.size(), "width or number of layers");
  compare(a.context == b.context, "the length of the context");
  compare(a.norm == b.norm && a.norm_epsilon == b.norm_epsilon, "the norms");
  compare(same_positions(a.positions, b.positions, a.context), "rotary positions and their scaling");
  compare(a.embedding_scale == b.embedding_scale && a.residual_scale == b.residual_scale &&
              a.logit_scale == b.logit_scale,
          "the multipliers");
  compare(a.tied_head == b.tied_head && a.head_bias == b.head_bias, "the head");
  for (std::size_t layer = 0; layer < std::min(a.blocks.size(), b.blocks.size()); ++layer) {
    const BlockSpec &left = a.blocks[layer], &right = b.blocks[layer];
    compare(left.attention.window == right.attention.window, fmt::format("the window of layer {}", layer));
    AttentionSpec attention = left.attention;
    attention.window = right.attention.window;
    compare(attention == right.attention, fmt::format("the attention of layer {}", layer));
    compare(left.mlp == right.mlp && left.parallel == right.parallel,
            fmt::format("the MLP of layer {}", layer));
  }
  return out;
}

}  // namespace

void require_same_model(const OutgoingGguf& file, const ModelSpec& original, std::string_view origin) {
  const std::string name = fmt::format("{} as GGUF", origin);
  const auto preview = open_gguf(std::make_shared<Preview>(file), name);
  const ModelPlan plan = describe_model(*preview);
  std::vector<std::string> problems = differences(original, plan.spec);
  if (problems.empty()) {
    const TensorPlan tensors = plan_tensors(plan.spec, *plan.architecture, *preview);
    problems = tensors.problems;
    const std::vector<std::string> unused = unused_tensors(tensors, plan.spec, *preview);
    problems.insert(problems.end(), unused.begin(), unused.end());
    expects(problems.empty(),
            fmt::format("the exported tensors are those a loader asks for: {}", fmt::join(problems, ", ")));
  }
  if (problems.empty()) return;
  constexpr std::size_t max_shown = 6;
  const bool more = problems.size() > max_shown;
  if (more) problems.resize(max_shown);
  fail(ErrorKind::unsupported, fmt::format("{}: a GGUF file cannot say all of this model", origin),
       {.why = fmt::format("its keys have no words for {}{}", fmt::join(problems, ", "), more ? ", …" : ""),
        .next = "use the model as it is: Inferno reads it without conversion"});
}

}  // namespace inferno
