#include "model/weights.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
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

// Reads planned slots one by one, in the order of slot_requests(), and packs them for the backend.
class Binder {
 public:
  Binder(const ModelSpec& spec, const TensorPlan& plan, Backend& backend, BoundModel& out)
      : spec_(spec), slots_(plan.slots), backend_(backend), out_(out) {}

  void run() {
    ModelWeights& weights = out_.weights;
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
    const std::vector<std::byte> bytes = read_part(part, cols);
    last_bytes_ = bytes.size();
    const HostWeight host = {.format = part.tensors.front().format,
                             .count = std::max(part.experts, 1),
                             .rows = part.rows,
                             .cols = cols,
                             .data = bytes};
    out_.report.parameters += static_cast<std::uint64_t>(host.count) * static_cast<std::uint64_t>(host.rows) *
                              static_cast<std::uint64_t>(host.cols);
    out_.report.weight_bytes += bytes.size();
    return &out_.weights.packed.emplace_back(backend_.pack(host));
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
      out_.report.token_bytes +=
          last_bytes_ * active_share(slot.request).first / active_share(slot.request).second;
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
  std::size_t next_ = 0;
  std::uint64_t last_bytes_ = 0, table_bytes_ = 0;
};

}  // namespace

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
  return out;
}

}  // namespace inferno
