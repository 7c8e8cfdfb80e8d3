// Which codec for which weight, how its rows are cut, and the products' arguments.
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// What stays free of a multiprocessor's shared memory, so that a small kernel may already wait there.
constexpr int left_free = 24 << 10;

// Bytes that a multiprocessor has on their way at once: enough to keep the memory busy. With more, what the
// kernel reads beside its weights would stand in line behind them.
constexpr int in_flight = 96 << 10;

const StreamCodec* codec_of(const WeightView& weight) {
  const bool split = weight.layout == Layout::split;
  if (weight.format == WeightFormat::bf16) return &stream_bf16();
  if (weight.format == WeightFormat::f16) return &stream_f16();
  if (split && weight.format == WeightFormat::q8_0) return &stream_q8_0();
  if (split && weight.format == WeightFormat::mxfp4) return &stream_mxfp4();
  if (weight.format == WeightFormat::q4_k) return &stream_q4_k();
  return nullptr;
}

constexpr int round_up(int value, int to) {
  return (value + to - 1) / to * to;
}
constexpr int divided(int value, int by) {
  return (value + by - 1) / by;
}
constexpr int stride_of(int bytes, int rest) {
  const int least = round_up(bytes, 16);
  return least + ((rest - least) % 128 + 128) % 128;
}

StreamShape shape_of(const Queue& queue, const StreamTraits& traits, const WeightView& weight, int vectors) {
  StreamShape shape;
  shape.block_bytes = traits.piece_bytes;
  shape.tail_bytes = traits.tail_bytes;
  shape.tail_at = weight.cols / 32 * traits.piece_bytes;
  const int all = divided(weight.cols, traits.part_most);  // stages of a row
  shape.panels = divided(all, traits.parts);
  shape.parts = divided(all, shape.panels);
  shape.part_cols = all == 1 ? weight.cols : round_up(divided(weight.cols, all), traits.align);
  shape.panel_cols = shape.parts * shape.part_cols;
  int piece = shape.part_cols / 32 * traits.piece_bytes;
  if (all == 1) {
    shape.row_copy = piece = static_cast<int>(weight.row_bytes);
  } else if (traits.tail_bytes > 0) {
    shape.tail_stride = round_up(shape.part_cols / 32 * traits.tail_bytes, 16) + 16;
  }
  shape.blocks_each = round_up(divided(shape.part_cols / 32, stream_warps), 2);
  shape.stride = stride_of(piece, traits.stride_rest);
  shape.stage_bytes = round_up(16 * (shape.stride + shape.tail_stride), 128);
  const int room = queue.shared_limit - left_free - StreamRoom::fixed_bytes(vectors * weight.cols);
  shape.stages = std::min(stream_most_stages, std::max(0, room) / shape.stage_bytes);
  shape.ahead = std::clamp(in_flight / shape.stage_bytes, 2, std::max(2, shape.stages));
  return shape;
}

struct Start {
  const StreamCodec& codec;
  StreamCall call;
};

Start start_of(const Queue& queue, std::span<const WeightView> parts, const StreamInput& in, int vectors) {
  const WeightView& first = parts.front();
  Start start = {*codec_of(first), {}};
  StreamCall& call = start.call;
  call.shape = shape_of(queue, start.codec.traits, first, vectors);
  call.row_bytes = first.row_bytes;
  call.expert_bytes = first.rows * first.row_bytes;
  call.cols = first.cols;
  call.vectors = vectors;
  call.in = in.rows.data;
  call.in_is_wide = in.rows.dtype == DType::f32;
  call.norm = in.norm;
  call.part_count = static_cast<int>(parts.size());
  return start;
}

void launch_stream(const Queue& queue, const Start& start, StreamMode mode) {
  const StreamCall& call = start.call;
  const int blocks = std::min(queue.multiprocessors, call.tiles);
  const int shared =
      StreamRoom::fixed_bytes(call.vectors * call.cols) + call.shape.stages * call.shape.stage_bytes;
  start.codec.start(queue, call, mode, blocks, shared);
}

void set_gated(StreamCall& call, std::span<const WeightView> gate_up, int hidden,
               const ActivationSpec& activation) {
  call.parts[0] = {.data = gate_up[0].data, .rows = hidden};
  call.parts[1] = {.data = gate_up.size() == 2 ? gate_up[1].data : gate_up[0].data + hidden * call.row_bytes,
                   .rows = hidden};
  call.tiles = divided(hidden, 8);
  call.activation = activation;
}

void set_add(StreamCall& call, const WeightView& weight, Matrix out, const AddTo& add) {
  call.parts[0] = {.data = weight.data, .rows = weight.rows};
  call.tiles = divided(weight.rows, 8);
  call.out = elements_of(out);
  call.residual = add.residual;
  call.gain = add.gain;
  call.scale = add.scale;
  call.squares = add.squares;
  if (add.router == nullptr) return;
  call.router = {add.router->memory.data(), add.router->format == WeightFormat::f32};
  call.router_experts = add.router->rows;
  call.router_logits = add.router_logits;
}

__global__ void __launch_bounds__(1024) finish_norm_kernel(const Elements row, int width, DelayedNorm norm) {
  wait_for_previous();
  let_next_start();
  const float inverse = inverse_rms(norm, squares_of_lane(norm, static_cast<int>(threadIdx.x) % 32));
  for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x)) {
    row.put(i, row.get(i) * inverse);
  }
}

}  // namespace

void finish_norm(const Queue& queue, Matrix row, const DelayedNorm& norm) {
  launch(queue, {.threads = 1024}, finish_norm_kernel, elements_of(row), row.cols, norm);
}

int stream_blocks(const Queue& queue, int rows) {
  return std::min(queue.multiprocessors, divided(rows, 8));
}

bool has_stream(const Queue& queue, const WeightView& weight, int vectors) {
  if (weight.layout == Layout::tiled) return false;  // not read by these kernels
  if (!queue.overlaps || weight.cols % 64 != 0 || weight.row_bytes % 16 != 0) return false;
  const StreamCodec* codec = codec_of(weight);
  if (codec == nullptr || vectors > stream_most_active) return false;
  const StreamShape shape = shape_of(queue, codec->traits, weight, vectors);
  return shape.stages >= 3 && shape.blocks_each <= codec->traits.most_blocks;
}

bool stream_takes_router(const Queue& queue, const Weight& router) {
  const bool plain = router.format == WeightFormat::f32 || router.format == WeightFormat::bf16;
  if (!plain || router.rows > stream_most_experts) return false;
  const int rows = 8 * divided(divided(router.cols, 8), queue.multiprocessors);  // of a block
  return rows <= stream_batch_rows && divided(rows, router_lanes(router.rows)) <= RouterColumns::most;
}

void stream_linear(const Queue& queue, std::span<const WeightView> parts, Matrix out, int column,
                   const StreamInput& in, const float* bias) {
  Start start = start_of(queue, parts, in, 1);
  StreamCall& call = start.call;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.parts[i] = {
        .data = parts[i].data, .rows = parts[i].rows, .column = column, .first_tile = call.tiles};
    column += parts[i].rows;
    call.tiles += divided(parts[i].rows, 8);
  }
  call.out = elements_of(out);
  call.bias = bias;
  launch_stream(queue, start, StreamMode::plain);
}

void stream_gated(const Queue& queue, std::span<const WeightView> gate_up, Matrix out, const StreamInput& in,
                  const float* bias, const ActivationSpec& activation) {
  Start start = start_of(queue, gate_up.first(1), in, 1);
  set_gated(start.call, gate_up, out.cols, activation);
  start.call.out = elements_of(out);
  start.call.bias = bias;
  launch_stream(queue, start, StreamMode::gated);
}

void stream_add(const Queue& queue, const WeightView& weight, Matrix out, const StreamInput& in,
                const float* bias, const AddTo& add) {
  Start start = start_of(queue, {&weight, 1}, in, 1);
  set_add(start.call, weight, out, add);
  start.call.bias = bias;
  launch_stream(queue, start, StreamMode::add);
}

void stream_experts(const Queue& queue, std::span<const WeightView> gate_up, Matrix out,
                    const StreamInput& in, const Linear& linear, const ActivationSpec& activation,
                    const Routing& routing) {
  Start start = start_of(queue, gate_up.first(1), in, 1);
  StreamCall& call = start.call;
  set_gated(call, gate_up, out.cols, activation);
  call.expert_tiles = call.tiles;
  call.tiles *= routing.active;
  call.active = routing.active;
  call.routing = routing;
  call.out = elements_of(out);
  call.bias = floats_of(linear.bias);
  call.bias_stride = linear.bias.cols;
  launch_stream(queue, start, StreamMode::gated);
}

void stream_combine(const Queue& queue, const WeightView& down, Matrix out, const StreamInput& in,
                    const Linear& linear, const Routing& routing, const AddTo& add) {
  Start start = start_of(queue, {&down, 1}, in, routing.active);
  StreamCall& call = start.call;
  set_add(call, down, out, add);
  call.experts = routing.chosen;
  call.shares = routing.shares;
  call.active = routing.active;
  call.bias = floats_of(linear.bias);
  call.bias_stride = linear.bias.cols;
  launch_stream(queue, start, StreamMode::add);
}

}  // namespace inferno::cuda
