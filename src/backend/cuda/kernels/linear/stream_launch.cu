// The arguments of stream products, which the kernels of all formats share.
#include <cmath>

#include "backend/cuda/kernels/linear/format_kernels.h"
#include "backend/cuda/kernels/linear/stream_kernel.cuh"

namespace inferno::cuda {
namespace {

constexpr int divided(int value, int by) {
  return (value + by - 1) / by;
}

struct Start {
  StreamLauncher* start;
  StreamCall call;
};

Start start_of(const Queue& queue, std::span<const WeightView> parts, const StreamInput& in, int vectors) {
  const WeightView& first = parts.front();
  Start start = {kernels_of(first.format).stream, {}};
  StreamCall& call = start.call;
  call.shape = *stream_shape(queue, first, vectors);
  call.tile_bytes = tiles::tile_bytes(first.format, first.cols);
  call.expert_bytes = tiles::padded_rows(first.rows) / tiles::tile_rows * call.tile_bytes;
  call.cols = first.cols;
  call.column_order = first.column_order;
  call.vectors = vectors;
  call.in = in.rows.data;
  call.in_is_wide = in.rows.dtype == DType::f32;
  call.norm = in.norm;
  call.part_count = static_cast<int>(parts.size());
  return start;
}

void launch_product(const Queue& queue, Start& start, int tiles, StreamMode mode) {
  StreamCall& call = start.call;
  const int blocks = std::min(queue.multiprocessors, tiles);
  call.tiles_each = tiles / blocks;
  call.tiles_remainder = tiles % blocks;
  const int shared = stream_fixed_bytes(call.vectors * call.cols) +
                     call.shape.stages * call.shape.stage_bytes() + stream_ring_padding;
  start.start(queue, call, mode, blocks, shared);
}

// Returns the number of gate tiles.
int set_gated(StreamCall& call, std::span<const WeightView> gate_up, int hidden,
              const ActivationSpec& activation) {
  const int tiles = divided(hidden, tiles::tile_rows);
  call.parts[0] = {.data = gate_up[0].data, .rows = hidden};
  call.parts[1] = {.data = gate_up.size() == 2 ? gate_up[1].data : gate_up[0].data + tiles * call.tile_bytes,
                   .rows = hidden};
  call.activation = activation;
  return tiles;
}

void set_add(StreamCall& call, const WeightView& weight, Matrix out, const AddTo& add) {
  call.parts[0] = {.data = weight.data, .rows = weight.rows};
  call.out = elements_of(out);
  call.residual = add.residual;
  call.gain = add.gain;
  call.scale = add.scale;
  call.squares = add.squares;
  call.undecided = add.undecided;
  if (add.router == nullptr) return;
  call.router = {add.router->memory.data(), add.router->format == WeightFormat::f32};
  if (view(*add.router).layout == Layout::tiled) {
    call.router_tile = tiles::tile_bytes(add.router->format, add.router->cols);
  }
  call.router_experts = add.router->rows;
  call.router_shift = stream_router_shift(add.router->rows);
  call.router_sums = add.router_sums;
}

__global__ void __launch_bounds__(1024) finish_norm_kernel(const Elements row, int width, DelayedNorm norm) {
  wait_for_previous();
  let_next_start();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  PartialSquares squares;
  squares.load(norm, lane);
  const float inverse = squares.inverse_rms(norm, lane);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x)) {
    row.put(i, row.get(i) * inverse);
  }
}

__global__ void clear_sums_kernel(std::int64_t* sums) {
  wait_for_previous();
  let_next_start();
  sums[threadIdx.x] = 0;
}

}  // namespace

void clear_sums(const Queue& queue, std::int64_t* sums) {
  launch(queue, {.threads = stream_max_experts}, clear_sums_kernel, sums);
}

float stream_hidden_scale(const WeightView& down, const ActivationSpec& activation) {
  const float largest = largest_activated(activation);
  if (down.format != WeightFormat::mxfp4) return 0.0f;
  return largest > 1e-20f && largest < 1e20f ? std::exp2(std::floor(std::log2(32768.0f / largest))) : 0.0f;
}

void finish_norm(const Queue& queue, Matrix row, const DelayedNorm& norm) {
  launch(queue, {.threads = 1024}, finish_norm_kernel, elements_of(row), row.cols, norm);
}

void stream_linear(const Queue& queue, std::span<const WeightView> parts, Matrix out, int column,
                   const StreamInput& in, const float* bias) {
  Start start = start_of(queue, parts, in, 1);
  StreamCall& call = start.call;
  int tiles = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.parts[i] = {.data = parts[i].data, .rows = parts[i].rows, .column = column, .first_tile = tiles};
    column += parts[i].rows;
    tiles += divided(parts[i].rows, tiles::tile_rows);
  }
  call.out = elements_of(out);
  call.bias = bias;
  launch_product(queue, start, tiles, StreamMode::plain);
}

void stream_gated(const Queue& queue, std::span<const WeightView> gate_up, Matrix out, const StreamInput& in,
                  const float* bias, const ActivationSpec& activation) {
  Start start = start_of(queue, gate_up.first(1), in, 1);
  const int tiles = set_gated(start.call, gate_up, out.cols, activation);
  start.call.out = elements_of(out);
  start.call.bias = bias;
  launch_product(queue, start, tiles, StreamMode::gated);
}

void stream_add(const Queue& queue, const WeightView& weight, Matrix out, const StreamInput& in,
                const float* bias, const AddTo& add) {
  Start start = start_of(queue, {&weight, 1}, in, 1);
  set_add(start.call, weight, out, add);
  if (add.router != nullptr) start.call.shape.early_in_flight = 1;  // attention is still reading the KV cache
  start.call.bias = bias;
  launch_product(queue, start, divided(weight.rows, tiles::tile_rows), StreamMode::add);
}

void stream_experts(const Queue& queue, std::span<const WeightView> gate_up, Matrix out,
                    const StreamInput& in, const Linear& linear, const ActivationSpec& activation,
                    const Routing& routing) {
  Start start = start_of(queue, gate_up.first(1), in, 1);
  StreamCall& call = start.call;
  call.expert_tiles = set_gated(call, gate_up, out.cols, activation);
  call.active = routing.active;
  call.routing = routing;
  call.out = elements_of(out);
  call.bias = floats_of(linear.bias);
  call.bias_stride = linear.bias.cols;
  launch_product(queue, start, call.expert_tiles * routing.active, StreamMode::experts);
}

void stream_combine(const Queue& queue, const WeightView& down, Matrix out, const StreamInput& in,
                    const Linear& linear, const Routing& routing, const AddTo& add) {
  Start start = start_of(queue, {&down, 1}, in, routing.active);
  StreamCall& call = start.call;
  set_add(call, down, out, add);
  call.experts = routing.chosen;
  call.shares = routing.shares;
  call.active = routing.active;
  call.routing = routing;
  // Combine waits for many inputs, and MXFP4 takes longer to decode than to load.
  call.shape.early_in_flight = 1;
  if (down.format == WeightFormat::mxfp4) call.shape.max_in_flight = 1;
  if (routing.hidden_scale > 0.0f) call.in_factor = 1.0f / routing.hidden_scale;
  call.bias = floats_of(linear.bias);
  call.bias_stride = linear.bias.cols;
  launch_product(queue, start, divided(down.rows, tiles::tile_rows), StreamMode::combine);
}

}  // namespace inferno::cuda
