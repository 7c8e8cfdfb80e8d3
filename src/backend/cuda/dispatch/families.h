// Whether a family of kernels takes given weights, beyond what a shape says: what the tables of several
// operations ask.
#pragma once

#include <span>

#include "backend/cuda/dispatch/shapes.h"

namespace inferno::cuda {

bool has_gemv(const WeightView& weight);
// Rows of a gate, then rows of up: one matrix of 2 * hidden rows, or two alike of `hidden`.
bool is_gate_and_up(std::span<const WeightView> parts, int hidden);
bool has_gated_gemv(std::span<const WeightView> gate_up, int hidden);
// Activations that gemm kernels can apply to their sums: silu and its clamped variant, gated.
bool is_gate(const ActivationSpec& activation);
bool has_gated_gemm(const DeviceTraits& device, std::span<const WeightView> gate_up, int hidden,
                    const ActivationSpec& activation);
// Whether a stream kernel can add its result to the residual stream and leave 1 / rms to the next kernel.
bool can_delay_norm(const DeviceTraits& device, const Norm& norm, const WeightView& weight, int vectors);

}  // namespace inferno::cuda
