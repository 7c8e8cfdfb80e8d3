#include "model/weights.h"

#include <fmt/format.h>

#include <algorithm>

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
      if (const auto reason = backend.refuses(spec.blocks[layer], loaded_format(part))) {
        plan.problems.push_back(fmt::format("{}: {}", part.names.front(), *reason));
      }
    }
  }
}

// A file may be written to while it is read: then each piece is valid, but they do not belong together.
void check_unchanged(const TensorPlan& plan) {
  for (const PlannedSlot& slot : plan.slots) {
    for (const PlannedPart& part : slot.parts) {
      for (const StoredTensor& tensor : part.tensors) tensor.source->check_unchanged();
      for (const StoredTensor& bias : part.biases) bias.source->check_unchanged();
    }
  }
}

// Takes planned slots one by one, in the order of slot_requests(). Vectors are read at once; matrices are
// loaded together at the end.
class Binder {
 public:
  Binder(const ModelSpec& spec, const TensorPlan& plan, std::span<const CacheScales> scales, Backend& backend,
         BoundModel& out)
      : spec_(spec), slots_(plan.slots), scales_(scales), backend_(backend), out_(out) {}

  void run() {
    ModelWeights& weights = out_.weights;
    std::size_t parts = 0;
    for (const PlannedSlot& slot : slots_) parts += slot.parts.size();
    weights.packed.reserve(parts);  // so that pointers into it stay valid
    weights.embedding = table(Slot::embedding);
    if (std::holds_alternative<LearnedPositions>(spec_.positions)) weights.positions = table(Slot::positions);
    for (const BlockSpec& block : spec_.blocks) {
      ++layer_;
      weights.blocks.push_back(bind_block(block));
    }
    layer_ = -1;
    weights.final_norm = norm(Slot::final_norm, spec_.logit_scale);
    if (spec_.tied_head) {
      weights.head.parts = {weights.embedding};
    } else {
      weights.head = linear(Slot::head);
    }
    backend_.load(weights.packed, sources_);
  }

 private:
  BlockWeights bind_block(const BlockSpec& block) {
    BlockWeights out = {};
    out.attention_norm = norm(Slot::attention_norm);
    out.qkv = linear(Slot::qkv);
    out.attention.norm_epsilon = spec_.norm_epsilon;
    if (block.attention.qk_norm) out.attention.q_norm = vector(Slot::q_norm);
    if (block.attention.qk_norm) out.attention.k_norm = vector(Slot::k_norm);
    if (block.attention.sinks) out.attention.sinks = vector(Slot::sinks);
    if (!scales_.empty()) bind_scales(out.attention, scales_[static_cast<std::size_t>(layer_)]);
    out.attention_out = linear(Slot::attention_out);
    if (!block.parallel) out.mlp_norm = norm(Slot::mlp_norm);
    std::visit([&](const auto& mlp) { out.mlp = bind_mlp(mlp); }, block.mlp);
    return out;
  }

  void bind_scales(AttentionWeights& out, const CacheScales& scales) {
    if (!scales.keys.empty()) out.key_scales = upload(scales.keys, 1);
    if (!scales.values.empty()) out.value_scales = upload(scales.values, 1);
  }

  // Braced initializers are evaluated from left to right, which is the order of the slots.
  DenseWeights bind_mlp(const DenseMlp& mlp) {
    return DenseWeights{linear(mlp.activation.gated ? Slot::gate_up : Slot::up), linear(Slot::down)};
  }
  MoeWeights bind_mlp(const MoeMlp&) {
    return MoeWeights{linear(Slot::router), linear(Slot::expert_gate_up), linear(Slot::expert_down)};
  }

  // Weights of one shape could change places unnoticed, so each step names the slot that it expects.
  const PlannedSlot& take(Slot expected) {
    expects(next_ < slots_.size(), "the plan has every slot of the model");
    const PlannedSlot& slot = slots_[next_++];
    expects(slot.request.slot == expected && slot.request.layer == layer_,
            fmt::format("the plan has {} of layer {}, the model expects {} of layer {}",
                        name_of(slot.request.slot), slot.request.layer, name_of(expected), layer_));
    return slot;
  }

  // The weight is loaded once all sources are known.
  const Weight* pack(const PlannedPart& part, int cols) {
    sources_.push_back(source_of(part, cols));
    return &out_.weights.packed.emplace_back();
  }

  const Weight* table(Slot expected) {
    const PlannedSlot& slot = take(expected);
    return pack(slot.parts.front(), slot.request.cols);
  }

  Linear linear(Slot expected) {
    const PlannedSlot& slot = take(expected);
    Linear out;
    for (const PlannedPart& part : slot.parts) out.parts.push_back(pack(part, slot.request.cols));
    if (slot.request.bias) out.bias = upload(read_biases(slot), std::max(slot.request.experts, 1));
    return out;
  }

  Matrix vector(Slot expected) {
    return upload(read_floats(take(expected).parts.front().tensors.front()), 1);
  }

  // The factor on the logits is folded into the last norm, so that no kernel has to know it.
  Norm norm(Slot expected, float scale = 1.0f) {
    const PlannedPart& part = take(expected).parts.front();
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
    return matrix;
  }

  const ModelSpec& spec_;
  const std::vector<PlannedSlot>& slots_;
  std::span<const CacheScales> scales_;
  Backend& backend_;
  BoundModel& out_;
  std::vector<WeightSource> sources_;  // one for each packed weight
  std::size_t next_ = 0;
  int layer_ = -1;  // of the block that is bound now; -1 outside the blocks
};

constexpr const char* float_why = "vectors are added in float32; every value is kept exactly";

class Lister {
 public:
  explicit Lister(const Backend& backend) : backend_(backend) {}

  void vectors(const std::vector<std::string>& names, const std::vector<StoredTensor>& tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].format == WeightFormat::f32) continue;
      found_.push_back({names[i], fmt::format("{} to f32", name_of(tensors[i].format)), float_why});
    }
  }

  void matrices(const PlannedPart& part, const Weight& weight) {
    const auto add = [&](const std::string& change, const std::string& why) {
      for (const std::string& name : part.names) found_.push_back({name, change, why});
    };
    if (part.tensors.front().is_joined) {
      add("codes and scales joined into blocks", "safetensors has two tensors, the kernels read one");
    }
    if (part.rounded) {
      add(fmt::format("{} rounded to {}", name_of(part.tensors.front().format), name_of(*part.rounded)),
          "--quantize asks for it");
    }
    if (part.transposed) add("transposed", "it is stored as [in, out]; products read rows of [out, in]");
    if (part.interleaved) add("rows reordered", "gate and up rows alternate in the file");
    if (part.rotary_heads > 0)
      add("rows reordered", "GGUF stores the two rows of a rotary pair next to each other");
    if (const auto relayout = backend_.relayout(weight)) add("laid out as " + relayout->to, relayout->why);
  }

  std::vector<Conversion> take() { return std::move(found_); }

 private:
  const Backend& backend_;
  std::vector<Conversion> found_;
};

// Every tensor that does not reach the kernels as its file stores it. `packed` has the parts of all slots
// that are not vectors, in order.
std::vector<Conversion> conversions(const TensorPlan& plan, const Backend& backend,
                                    std::span<const Weight> packed) {
  Lister lister(backend);
  std::size_t next = 0;
  for (const PlannedSlot& slot : plan.slots) {
    for (const PlannedPart& part : slot.parts) {
      if (slot.request.is_vector) {
        lister.vectors(part.names, part.tensors);
      } else {
        lister.matrices(part, packed[next++]);
      }
      lister.vectors(part.bias_names, part.biases);
    }
  }
  return lister.take();
}

}  // namespace

TensorPlan plan_weights(const ModelSpec& spec, const Architecture& arch, const Checkpoint& checkpoint,
                        const Backend& backend) {
  TensorPlan plan = plan_tensors(spec, arch, checkpoint);
  refuse_formats(plan, spec, backend);
  require_complete(plan, checkpoint);
  return plan;
}

BoundModel bind(const ModelSpec& spec, const TensorPlan& plan, std::span<const CacheScales> scales,
                Backend& backend) {
  BoundModel out;
  Binder(spec, plan, scales, backend, out).run();
  check_unchanged(plan);
  out.conversions = conversions(plan, backend, out.weights.packed);
  return out;
}

}  // namespace inferno
