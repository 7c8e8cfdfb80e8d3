#include "golden/float_checkpoint.h"

#include <cstring>

#include "model/tensor_plan.h"

namespace inferno::testing {
namespace {

class FloatCheckpoint final : public Checkpoint {
 public:
  explicit FloatCheckpoint(const Checkpoint& original) : original_(original) {}
  Container container() const override { return original_.container(); }
  std::string_view architecture() const override { return original_.architecture(); }
  const Config& config() const override { return original_.config(); }
  std::vector<std::string> names() const override { return original_.names(); }

  std::optional<StoredTensor> find(std::string_view name) const override {
    const auto tensor = original_.find(name);
    return tensor ? std::optional(decoded(*tensor)) : std::nullopt;
  }

 private:
  static StoredTensor decoded(const StoredTensor& tensor) {
    const std::vector<float> values = read_floats(tensor);
    std::vector<std::byte> bytes(values.size() * sizeof(float));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    const std::uint64_t size = bytes.size();
    return {WeightFormat::f32, tensor.shape, memory_source(std::move(bytes)), 0, size};
  }

  const Checkpoint& original_;
};

}  // namespace

std::unique_ptr<Checkpoint> as_float_checkpoint(const Checkpoint& original) {
  return std::make_unique<FloatCheckpoint>(original);
}

}  // namespace inferno::testing
