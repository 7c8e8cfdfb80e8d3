// Which weights grouped products take, how columns and shared memory are divided, and the arguments that all
// formats share.
#include "backend/cuda/kernels/linear/grouped.cuh"

#include <algorithm>

namespace inferno::cuda {
namespace {

using Start = void (*)(const Queue&, const GroupedCall&, GroupedMode);

Start start_of(const WeightView& weight) {
  if (weight.layout != Layout::tiled || weight.cols % 8 != 0) return nullptr;
  if (weight.format == WeightFormat::bf16) return grouped_bf16;
  if (weight.format == WeightFormat::f16) return grouped_f16;
  if (weight.format == WeightFormat::q8_0) return grouped_q8_0;
  if (weight.format == WeightFormat::mxfp4) return grouped_mxfp4;
  if (weight.format == WeightFormat::q4_k) return grouped_q4_k;
  return nullptr;
}

// Padding of token rows against bank conflicts: the four lanes of a row read 16 bytes each, 32 bytes apart
// for MXFP4, otherwise adjacent.
int token_padding(WeightFormat format) {
  return format == WeightFormat::mxfp4 ? 16 : 64;
}

int stage_bytes(WeightFormat format) {
  if (format == WeightFormat::q8_0) return GroupedStage<WeightFormat::q8_0>::bytes;
  if (format == WeightFormat::mxfp4) return GroupedStage<WeightFormat::mxfp4>::bytes;
  if (format == WeightFormat::q4_k) return GroupedStage<WeightFormat::q4_k>::bytes;
  return GroupedStage<WeightFormat::bf16>::bytes;  // and f16
}

// stages is 0 if it does not fit.
GroupedShape cut(const Queue& queue, const WeightView& weight, int n_tiles, int slabs) {
  const tiles::Chunk chunk = tiles::chunk_of(weight.format);
  GroupedShape shape = {.chunks = (weight.cols + chunk.cols - 1) / chunk.cols, .n_tiles = n_tiles};
  shape.slab_chunks = (shape.chunks + slabs - 1) / slabs;
  shape.slabs = (shape.chunks + shape.slab_chunks - 1) / shape.slab_chunks;
  shape.token_stride = 2 * shape.slab_chunks * chunk.cols + token_padding(weight.format);
  const int available = queue.shared_limit - GroupedSmem::fixed_bytes(shape);
  shape.stages =
      std::min(available / stage_bytes(weight.format), grouped_max_stages) / grouped_teams * grouped_teams;
  if (shape.stages < 2 * grouped_teams) shape.stages = 0;
  return shape;
}

// The sums of slabs are added in the output, so only a plain product may have several.
GroupedShape shape_for(const Queue& queue, const WeightView& weight, int n_tiles, GroupedMode mode) {
  constexpr int max_slabs = 8;
  GroupedShape shape = cut(queue, weight, n_tiles, 1);
  for (int slabs = 2; mode == GroupedMode::plain && shape.stages == 0 && slabs <= max_slabs; ++slabs) {
    shape = cut(queue, weight, n_tiles, slabs);
  }
  return shape;
}

Start start_of(const WeightView& weight, DType in) {
  return in == DType::f16 && weight.format == WeightFormat::mxfp4 ? grouped_mxfp4_f16 : start_of(weight);
}

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

// Tiles of eight tokens per group: groups of up to 24 tokens, equally large if possible. 0 if none fits.
int dense_n_tiles(const Queue& queue, const WeightView& weight, Matrix out) {
  const int all = (out.rows + 7) / 8;
  for (int groups = 1; groups <= all; ++groups) {
    const int n_tiles = (all + groups - 1) / groups;
    if (n_tiles > grouped_max_n_tiles) continue;
    const GroupedShape shape = shape_for(queue, weight, n_tiles, GroupedMode::plain);
    if (shape.stages > 0 && (shape.slabs == 1 || out.dtype == DType::f32)) return n_tiles;
  }
  return 0;
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

int grouped_tokens(const Queue& queue, std::span<const WeightView> gate_up, const WeightView& down,
                   int hidden, int wanted) {
  if (!queue.overlaps || !gemv_takes_gated(gate_up, hidden)) return 0;
  if (start_of(gate_up.front()) == nullptr || start_of(down) == nullptr) return 0;
  for (int n_tiles = std::min((wanted + 7) / 8, grouped_max_n_tiles); n_tiles > 0; --n_tiles) {
    if (shape_for(queue, gate_up.front(), n_tiles, GroupedMode::gated).stages > 0 &&
        shape_for(queue, down, n_tiles, GroupedMode::plain).stages > 0) {
      return 8 * n_tiles;
    }
  }
  return 0;
}

void grouped_gated(const Queue& queue, std::span<const WeightView> gate_up, const GroupedProduct& product,
                   const ActivationSpec& activation) {
  const WeightView& gate = gate_up.front();
  const int hidden = product.out.cols;
  GroupedCall call = call_of(gate, product);
  call.parts[0] = {.data = gate.data, .rows = hidden};
  call.parts[1] = {.data = gate_up.size() == 2 ? gate_up[1].data : gate.from_row(hidden), .rows = hidden};
  call.pairs = static_cast<int>(tiles::padded_rows(hidden) / tiles::tile_rows);
  call.activation = activation;
  call.shape = shape_for(queue, gate, product.group / 8, GroupedMode::gated);
  start_of(gate, product.in.dtype)(queue, call, GroupedMode::gated);
}

void grouped_plain(const Queue& queue, const WeightView& weight, const GroupedProduct& product) {
  GroupedCall call = call_of(weight, product);
  set_parts(call, {&weight, 1}, 0);
  call.shape = shape_for(queue, weight, product.group / 8, GroupedMode::plain);
  start_of(weight, product.in.dtype)(queue, call, GroupedMode::plain);
}

bool grouped_takes(const Queue& queue, const WeightView& weight, Matrix out) {
  return queue.overlaps && start_of(weight) != nullptr && dense_n_tiles(queue, weight, out) > 0;
}

void grouped_linear(const Queue& queue, std::span<const WeightView> parts, const Product& product) {
  const WeightView& first = parts.front();
  GroupedCall call;
  set_parts(call, parts, product.column);
  call.tile_bytes = first.tile_bytes;
  call.shape = shape_for(queue, first, dense_n_tiles(queue, first, product.out), GroupedMode::plain);
  call.tokens = product.out.rows;
  call.groups = (call.tokens + 8 * call.shape.n_tiles - 1) / (8 * call.shape.n_tiles);
  call.in = product.in.data;
  call.cols = first.cols;
  call.out = elements_of(product.out);
  call.out_cols = product.out.cols;
  call.bias = product.bias;
  start_of(first)(queue, call, GroupedMode::plain);
}

}  // namespace inferno::cuda
