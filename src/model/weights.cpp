#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "model/conversions.h"
#include "model/tensor_plan.h"

namespace inferno {
namespace {

void refuse_formats(TensorPlan& plan, const ModelSpec& spec, const Backend& backend) {
  for (const PlannedSlot& slot : plan.slots) {
    if (slot.request.is_vector) continue;
    const auto layer = static_cast<std::size_t>(std::max(slot.request.layer, 0));
    for (const PlannedPart& part : slot.parts) {
      if (part.tensors.empty()) continue;
      if (const auto reason = backend.refuses(spec.blocks[layer], part.tensors.front().format)) {
        plan.problems.push_back(fmt::format("{}: {}", part.names.front(), *reason));
      }
    }
  }
}

// A file may be written to while it is read; each piece is then good, and the whole is not.
void check_unchanged(const TensorPlan& plan) {
  for (const PlannedSlot& slot : plan.slots) {
    for (const PlannedPart& part : slot.parts) {
      for (const StoredTensor& tensor : part.tensors) tensor.source->check_unchanged();
      for (const StoredTensor& bias : part.biases) bias.source->check_unchanged();
    }
  }
}

[[noreturn]] void fail_with(const std::vector<std::string>& problems, const Checkpoint& checkpoint) {
  constexpr std::size_t shown = 20;
  std::string text = fmt::format("{}: {} tensor problem{}", checkpoint.config().origin(), problems.size(),
                                 problems.size() == 1 ? "" : "s");
  for (std::size_t i = 0; i < std::min(problems.size(), shown); ++i) text += "\n  " + problems[i];
  if (problems.size() > shown) text += fmt::format("\n  … and {} more", problems.size() - shown);
  fail(ErrorKind::corrupt, text,
       {.why = "the tensors do not fit what the configuration describes",
        .next = "fetch the model again; `inferno inspect` shows what the files hold"});
}

// Takes planned slots one by one, in the order of slot_requests(): vectors are read at once, matrices
// together at the end.
class Binder {
 public:
  Binder(const ModelSpec& spec, const TensorPlan& plan, Backend& backend, BoundModel& out)
      : spec_(spec), slots_(plan.slots), backend_(backend), out_(out) {}

  void run() {
    ModelWeights& weights = out_.weights;
    std::size_t parts = 0;
    for (const PlannedSlot& slot : slots_) parts += slot.parts.size();
    weights.packed.reserve(parts);  // they are pointed to from now on
    weights.embedding = table();
    if (std::holds_alternative<LearnedPositions>(spec_.positions)) weights.positions = table();
    for (const BlockSpec& block : spec_.blocks) weights.blocks.push_back(bind_block(block));
    weights.final_norm = norm(spec_.logit_scale);
    if (spec_.tied_head) {
      weights.head.parts = {weights.embedding};
      out_.report.token_bytes += table_bytes_;
    } else {
      weights.head = linear();
    }
    backend_.load(weights.packed, sources_);
  }

 private:
  BlockWeights bind_block(const BlockSpec& block) {
    BlockWeights out = {};
    out.attention_norm = norm();
    out.qkv = linear();
    out.attention.norm_epsilon = spec_.norm_epsilon;
    if (block.attention.qk_norm) out.attention.q_norm = vector();
    if (block.attention.qk_norm) out.attention.k_norm = vector();
    if (block.attention.sinks) out.attention.sinks = vector();
    out.attention_out = linear();
    if (!block.parallel) out.mlp_norm = norm();
    std::visit([&](const auto& mlp) { out.mlp = bind_mlp(mlp); }, block.mlp);
    return out;
  }

  // Braced initializers are evaluated from left to right, which is the order of the slots.
  DenseWeights bind_mlp(const DenseMlp&) { return DenseWeights{linear(), linear()}; }
  MoeWeights bind_mlp(const MoeMlp&) { return MoeWeights{linear(), linear(), linear()}; }

  const PlannedSlot& take() { return slots_[next_++]; }

  const Weight* pack(const PlannedPart& part, int cols) {
    const WeightSource& source = sources_.emplace_back(source_of(part, cols));
    last_bytes_ = source.bytes();
    out_.report.parameters +=
        static_cast<std::uint64_t>(source.all_rows()) * static_cast<std::uint64_t>(source.cols);
    out_.report.weight_bytes += last_bytes_;
    return &out_.weights.packed.emplace_back();  // loaded when all of them are known
  }

  const Weight* table() {
    const PlannedSlot& slot = take();
    const Weight* weight = pack(slot.parts.front(), slot.request.cols);
    if (slot.request.slot == Slot::embedding) table_bytes_ = last_bytes_;
    return weight;
  }

  Linear linear() {
    const PlannedSlot& slot = take();
    Linear out;
    for (const PlannedPart& part : slot.parts) {
      out.parts.push_back(pack(part, slot.request.cols));
      const auto [active, experts] = active_share(slot.request);
      out_.report.token_bytes += last_bytes_ * active / experts;
      if (slot.request.experts == 0) continue;
      out_.report.expert_bytes += last_bytes_;
      out_.report.chosen_share = static_cast<double>(active) / static_cast<double>(experts);
    }
    if (slot.request.bias) {
      const std::vector<float> bias = read_biases(slot);
      out.bias = upload(bias, std::max(slot.request.experts, 1));
    }
    return out;
  }

  // Of a mixture, one token reads only the experts chosen for it.
  std::pair<std::uint64_t, std::uint64_t> active_share(const SlotRequest& request) const {
    if (request.experts == 0) return {1, 1};
    const auto& mlp = std::get<MoeMlp>(spec_.blocks[static_cast<std::size_t>(request.layer)].mlp);
    return {static_cast<std::uint64_t>(mlp.active), static_cast<std::uint64_t>(mlp.experts)};
  }

  Matrix vector() { return upload(read_floats(take().parts.front().tensors.front()), 1); }

  // The factor on the logits is folded into the last norm, so that no kernel has to know it.
  Norm norm(float scale = 1.0f) {
    const PlannedPart& part = take().parts.front();
    std::vector<float> gain = read_floats(part.tensors.front());
    for (float& value : gain) value *= scale;
    Norm out = {.kind = spec_.norm, .epsilon = spec_.norm_epsilon, .gain = upload(gain, 1), .bias = {}};
    if (part.biases.empty()) return out;
    std::vector<float> bias = read_floats(part.biases.front());
    for (float& value : bias) value *= scale;
    out.bias = upload(bias, 1);
    return out;
  }

  Matrix upload(const std::vector<float>& values, int rows) {
    const std::span<const std::byte> bytes = std::as_bytes(std::span(values));
    out_.weights.memory.push_back(backend_.allocate(bytes.size(), "small weights"));
    const Matrix matrix = {out_.weights.memory.back().data(), DType::f32, rows,
                           static_cast<std::int32_t>(values.size()) / rows};
    backend_.upload(matrix, bytes);
    out_.report.parameters += values.size();
    out_.report.weight_bytes += bytes.size();
    return matrix;
  }

  const ModelSpec& spec_;
  const std::vector<PlannedSlot>& slots_;
  Backend& backend_;
  BoundModel& out_;
  std::vector<WeightSource> sources_;  // of packed
  std::size_t next_ = 0;
  std::uint64_t last_bytes_ = 0, table_bytes_ = 0;
};

}  // namespace

double LoadReport::step_bytes(int sequences) const {
  const double all = static_cast<double>(expert_bytes);
  const double dense = static_cast<double>(token_bytes) - all * chosen_share;
  return dense + all * (1.0 - std::pow(1.0 - chosen_share, sequences));
}

BoundModel bind(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint,
                Backend& backend) {
  TensorPlan plan = plan_tensors(spec, arch, checkpoint);
  for (const std::string& name : unused_tensors(plan, spec, checkpoint)) {
    plan.problems.push_back(fmt::format("{}: nothing in this architecture uses it", name));
  }
  refuse_formats(plan, spec, backend);
  if (!plan.problems.empty()) fail_with(plan.problems, checkpoint);
  BoundModel out;
  Binder(spec, plan, backend, out).run();
  check_unchanged(plan);
  out.report.conversions = conversions(plan, backend, out.weights.packed);
  return out;
}

}  // namespace inferno
