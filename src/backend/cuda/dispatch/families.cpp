#include "backend/cuda/dispatch/families.h"

namespace inferno::cuda {

bool has_gemv(const WeightView& weight) {
  const FormatTraits& format = traits_of(weight.format);
  return format.has_gemv && weight.layout == format.layout && weight.cols % 8 == 0;
}

bool is_gate_and_up(std::span<const WeightView> parts, int hidden) {
  const WeightView &gate = parts.front(), &up = parts.back();
  if (!same_kind(gate, up)) return false;
  if (parts.size() == 1) return gate.rows == 2 * hidden && gate.can_begin_at(hidden);
  return parts.size() == 2 && gate.rows == hidden && up.rows == hidden;
}

bool has_gated_gemv(std::span<const WeightView> gate_up, int hidden) {
  return has_gemv(gate_up.front()) && is_gate_and_up(gate_up, hidden);
}

bool is_gate(const ActivationSpec& activation) {
  return activation.gated &&
         (activation.kind == Activation::silu || activation.kind == Activation::swiglu_clamped);
}

bool has_gated_gemm(const DeviceTraits& device, std::span<const WeightView> gate_up, int hidden,
                    const ActivationSpec& activation) {
  return device.warp_groups && is_gate(activation) && is_decoded(gate_up.front()) &&
         gate_up.front().cols % 8 == 0 && is_gate_and_up(gate_up, hidden);
}

bool can_delay_norm(const DeviceTraits& device, const Norm& norm, const WeightView& weight, int vectors) {
  return norm.kind == NormKind::rms && !norm.bias && can_stream(device, weight, vectors) &&
         stream_blocks(device, weight.rows) <= stream_max_blocks;
}

}  // namespace inferno::cuda
