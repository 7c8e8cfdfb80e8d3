// The arguments of gemv products, which the kernels of all formats share.
#include "backend/cuda/kernels/linear/gemv.cuh"

#include "backend/cuda/kernels/linear/format_kernels.h"

namespace inferno::cuda {
namespace {

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
  call.column_order = first.column_order;
  int column = product.column;
  call.part_count = static_cast<int>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.parts[i] = {.data = parts[i].data, .rows = parts[i].rows, .column = column};
    column += parts[i].rows;
  }
  return call;
}

}  // namespace

void gemv(const Queue& queue, std::span<const WeightView> parts, const Product& product) {
  kernels_of(parts.front().format).gemv(queue, call_of(parts, product), GemvMode::plain, product.out.rows);
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
  kernels_of(gate_up.front().format)
      .gemv(queue, call, GemvMode::gated, chosen.experts == nullptr ? product.out.rows : chosen.choices);
}

void gemv_combined(const Queue& queue, const WeightView& down, const Product& product, const Chosen& chosen) {
  GemvCall call = call_of({&down, 1}, product);
  call.experts = chosen.experts;
  call.shares = chosen.shares;
  call.active = chosen.active;
  kernels_of(down.format).gemv(queue, call, GemvMode::combined, product.out.rows);
}

}  // namespace inferno::cuda
