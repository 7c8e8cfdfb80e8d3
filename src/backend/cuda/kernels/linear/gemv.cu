// The launcher for each format, and the arguments that all of them share.
#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

using Start = void (*)(const Queue&, const GemvCall&, GemvMode, int);

Start start_of(const WeightView& weight) {
  if (weight.layout != fast_layout(weight.format) || weight.cols % 8 != 0) return nullptr;
  if (weight.format == WeightFormat::bf16) return gemv_bf16;
  if (weight.format == WeightFormat::f16) return gemv_f16;
  if (weight.format == WeightFormat::q8_0) return gemv_q8_0;
  if (weight.format == WeightFormat::mxfp4) return gemv_mxfp4;
  if (weight.format == WeightFormat::q4_k) return gemv_q4_k;
  if (weight.format == WeightFormat::q5_k) return gemv_q5_k;
  if (weight.format == WeightFormat::q6_k) return gemv_q6_k;
  return nullptr;
}

GemvCall call_of(std::span<const WeightView> parts, const Product& product) {
  const WeightView& first = parts.front();
  GemvCall call;
  call.stride = first.layout == Layout::tiled ? first.tile_bytes : first.row_bytes;
  call.expert_bytes = first.bytes_between;
  call.cols = first.cols;
  call.in = product.in.data;
  call.tokens = product.out.rows;
  call.in_divisor = product.in_divisor;
  call.out = elements_of(product.out);
  call.out_cols = product.out.cols;
  call.bias = product.bias;
  call.bias_stride = product.bias_stride;
  int column = product.column;
  call.part_count = static_cast<int>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.parts[i] = {.data = parts[i].data, .rows = parts[i].rows, .column = column};
    column += parts[i].rows;
  }
  return call;
}

}  // namespace

bool has_gemv(const WeightView& weight) {
  return start_of(weight) != nullptr;
}

bool gemv_takes_gated(std::span<const WeightView> gate_up, int hidden) {
  const WeightView &gate = gate_up.front(), &up = gate_up.back();
  const bool alike = gate.format == up.format && gate.layout == up.layout && gate.cols == up.cols;
  if (!alike || !has_gemv(gate)) return false;
  if (gate_up.size() == 1) return gate.rows == 2 * hidden && gate.can_begin_at(hidden);
  return gate_up.size() == 2 && gate.rows == hidden && up.rows == hidden;
}

bool gemv_takes(const WeightView& down, int active) {
  return has_gemv(down) && active <= gemv_max_active && active * staged_bytes(down.cols) <= gemv_max_shared;
}

void gemv(const Queue& queue, std::span<const WeightView> parts, const Product& product) {
  start_of(parts.front())(queue, call_of(parts, product), GemvMode::plain, product.out.rows);
}

void gemv_gated(const Queue& queue, std::span<const WeightView> gate_up, const Product& product,
                const Chosen& chosen, const ActivationSpec& activation) {
  GemvCall call = call_of(gate_up.first(1), product);
  const int hidden = product.out.cols;
  call.parts[0].rows = hidden;  // tiles are counted in gate rows; the up rows come with them
  call.parts[1] = {.data = gate_up.size() == 2 ? gate_up[1].data : gate_up[0].from_row(hidden),
                   .rows = hidden};
  call.in_is_wide = product.in.dtype == DType::f32;
  call.experts = chosen.experts;
  call.active = chosen.active;
  call.in_divisor = chosen.active;
  call.activation = activation;
  start_of(gate_up.front())(queue, call, GemvMode::gated,
                            chosen.experts == nullptr ? product.out.rows : chosen.choices);
}

void gemv_combined(const Queue& queue, const WeightView& down, const Product& product, const Chosen& chosen) {
  GemvCall call = call_of({&down, 1}, product);
  call.experts = chosen.experts;
  call.shares = chosen.shares;
  call.active = chosen.active;
  start_of(down)(queue, call, GemvMode::combined, product.out.rows);
}

}  // namespace inferno::cuda
