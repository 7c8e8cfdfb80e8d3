#include "model/conversions.h"

#include <fmt/format.h>

namespace inferno {
namespace {

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
      add("codes and scales joined to blocks", "safetensors has them in two tensors, the kernels in one");
    }
    if (part.transposed) add("transposed", "it is stored as [in, out]; products read rows of [out, in]");
    if (part.interleaved) add("rows reordered", "gate and up take turns in the file");
    if (part.rotary_heads > 0) add("rows reordered", "GGUF stores the rotated pairs of a head side by side");
    if (const auto relayout = backend_.relayout(weight)) add("laid out as " + relayout->to, relayout->why);
  }

  std::vector<Conversion> take() { return std::move(found_); }

 private:
  const Backend& backend_;
  std::vector<Conversion> found_;
};

}  // namespace

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

}  // namespace inferno
