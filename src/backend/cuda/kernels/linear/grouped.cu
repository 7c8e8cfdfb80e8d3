// The arguments of grouped products, which the kernels of all formats share.
#include "backend/cuda/kernels/linear/grouped.cuh"

#include "backend/cuda/kernels/linear/format_kernels.h"

namespace inferno::cuda {
namespace {

// Two tiles make a pair; no pair spans two parts.
void set_parts(GroupedCall& call, std::span<const WeightView> parts, int column) {
  call.part_count = static_cast<int>(parts.size());
  call.pairs = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.parts[i] = {
        .data = parts[i].data, .rows = parts[i].rows, .column = column, .first_pair = call.pairs};
    call.pairs += (parts[i].rows + 2 * tiles::tile_rows - 1) / (2 * tiles::tile_rows);
    column += parts[i].rows;
  }
}

GroupedLauncher* launcher_of(const WeightView& weight, DType in) {
  const FormatKernels& kernels = kernels_of(weight.format);
  return in == DType::f16 ? kernels.grouped_f16 : kernels.grouped;
}

GroupedCall call_of(const WeightView& weight, const GroupedProduct& product) {
  GroupedCall call;
  call.tile_bytes = weight.tile_bytes;
  call.expert_bytes = weight.bytes_between;
  call.group_expert = product.sorted->tile_expert;
  call.group_first = product.sorted->tile_first;
  call.group_rows = product.sorted->tile_rows;
  call.groups = product.groups;
  call.gather = product.gathers ? product.sorted->tokens : nullptr;
  call.in = product.in.data;
  call.factors = product.factors;
  call.cols = weight.cols;
  call.out = elements_of(product.out);
  call.out_is_f16 = product.out.dtype == DType::f16;
  call.out_cols = product.out.cols;
  call.bias = product.bias;
  call.bias_stride = product.bias_stride;
  return call;
}

}  // namespace

void grouped_gated(const Queue& queue, std::span<const WeightView> gate_up, const GroupedProduct& product,
                   const ActivationSpec& activation) {
  const WeightView& gate = gate_up.front();
  const int hidden = product.out.cols;
  GroupedCall call = call_of(gate, product);
  call.parts[0] = {.data = gate.data, .rows = hidden};
  call.parts[1] = {.data = gate_up.size() == 2 ? gate_up[1].data : gate.from_row(hidden), .rows = hidden};
  call.pairs = static_cast<int>(tiles::padded_rows(hidden) / tiles::tile_rows);
  call.activation = activation;
  call.shape = grouped_shape(queue, gate, product.group / 8, GroupedMode::gated);
  launcher_of(gate, product.in.dtype)(queue, call, GroupedMode::gated);
}

void grouped_plain(const Queue& queue, const WeightView& weight, const GroupedProduct& product) {
  GroupedCall call = call_of(weight, product);
  set_parts(call, {&weight, 1}, 0);
  call.shape = grouped_shape(queue, weight, product.group / 8, GroupedMode::plain);
  launcher_of(weight, product.in.dtype)(queue, call, GroupedMode::plain);
}

void grouped_linear(const Queue& queue, std::span<const WeightView> parts, const Product& product) {
  const WeightView& first = parts.front();
  GroupedCall call;
  set_parts(call, parts, product.column);
  call.tile_bytes = first.tile_bytes;
  call.shape =
      grouped_shape(queue, first, grouped_dense_n_tiles(queue, first, product.out.rows, product.out.dtype),
                    GroupedMode::plain);
  call.tokens = product.out.rows;
  call.groups = (call.tokens + 8 * call.shape.n_tiles - 1) / (8 * call.shape.n_tiles);
  call.in = product.in.data;
  call.cols = first.cols;
  call.out = elements_of(product.out);
  call.out_cols = product.out.cols;
  call.bias = product.bias;
  launcher_of(first, DType::bf16)(queue, call, GroupedMode::plain);
}

}  // namespace inferno::cuda
