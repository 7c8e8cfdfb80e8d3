// Which codec for which weight, how its rows are cut, and the products' arguments.
#include <optional>

#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// What stays free of a multiprocessor's shared memory, so that a small kernel may already wait there.
constexpr int left_free = 25 << 10;

// Bytes that a multiprocessor has on their way at once: enough to keep the memory busy. With more, what the
// kernel reads beside its weights would stand in line behind them. Experts have a late start and much to
// decode: fewer are enough.
constexpr int in_flight = 64 << 10, in_flight_experts = 40 << 10;
constexpr int most_stage = 20 << 10;
constexpr int most_batch = stream_threads / tiles::tile_rows;

StartStream* start_for(WeightFormat format) {
  if (format == WeightFormat::bf16) return stream_bf16;
  if (format == WeightFormat::f16) return stream_f16;
  if (format == WeightFormat::q8_0) return stream_q8_0;
  if (format == WeightFormat::mxfp4) return stream_mxfp4;
  if (format == WeightFormat::q4_k) return stream_q4_k;
  return nullptr;
}

constexpr int divided(int value, int by) {
  return (value + by - 1) / by;
}

StreamShape shape_with(const Queue& queue, const WeightView& weight, int vectors, int parts) {
  const tiles::Chunk chunk = tiles::chunk_of(weight.format);
  StreamShape shape;
  shape.chunks = weight.cols / chunk.cols;
  shape.chunk_bytes = chunk.bytes;
  shape.part_chunks = divided(shape.chunks, parts);
  shape.parts = divided(shape.chunks, shape.part_chunks);
  shape.each = divided(shape.part_chunks, stream_members);
  if (shape.each > 1 && chunk.cols == 64) shape.each = divided(shape.each, 2) * 2;  // they come in twos
  const int room = queue.shared_limit - left_free - StreamRoom::fixed_bytes(vectors * weight.cols) -
                   StreamRoom::behind_ring;
  const int stages = std::min(stream_most_stages, std::max(0, room) / shape.stage_bytes());
  shape.stages = stages / stream_teams * stream_teams;
  const int ahead = weight.count > 1 ? in_flight_experts : in_flight;
  shape.ahead = std::clamp(ahead / shape.stage_bytes(), 2, std::max(2, shape.stages));
  shape.slots = vectors * shape.parts * stream_members;
  const int floats = tiles::tile_rows * (shape.slots + 1);
  shape.batch = std::min(most_batch, StreamRoom::batch_floats / floats / 2 * 2);  // gate and up together
  return shape;
}

// Of the cuts into stages of a good size, the one that leaves least of the shared memory unused.
std::optional<StreamShape> shape_of(const Queue& queue, const WeightView& weight, int vectors) {
  const tiles::Chunk chunk = tiles::chunk_of(weight.format);
  if (start_for(weight.format) == nullptr || weight.cols % chunk.cols != 0) return std::nullopt;
  const int least = divided(weight.cols / chunk.cols * chunk.bytes, most_stage);
  std::optional<StreamShape> best;
  for (int parts = least; parts <= least + least / 2; ++parts) {
    const StreamShape shape = shape_with(queue, weight, vectors, parts);
    const bool fits = shape.stages > 0 && shape.batch > 0;
    const auto used = [](const StreamShape& s) { return s.stages * s.stage_bytes(); };
    if (fits && (!best || used(shape) > used(*best))) best = shape;
  }
  return best;
}

struct Start {
  StartStream* start;
  StreamCall call;
};

Start start_of(const Queue& queue, std::span<const WeightView> parts, const StreamInput& in, int vectors) {
  const WeightView& first = parts.front();
  Start start = {start_for(first.format), {}};
  StreamCall& call = start.call;
  call.shape = *shape_of(queue, first, vectors);
  call.tile_bytes = tiles::tile_bytes(first.format, first.cols);
  call.expert_bytes = tiles::padded_rows(first.rows) / tiles::tile_rows * call.tile_bytes;
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
  const int shared = StreamRoom::fixed_bytes(call.vectors * call.cols) +
                     call.shape.stages * call.shape.stage_bytes() + StreamRoom::behind_ring;
  start.start(queue, call, mode, blocks, shared);
}

void set_gated(StreamCall& call, std::span<const WeightView> gate_up, int hidden,
               const ActivationSpec& activation) {
  call.parts[0] = {.data = gate_up[0].data, .rows = hidden};
  call.tiles = divided(hidden, tiles::tile_rows);
  call.parts[1] = {
      .data = gate_up.size() == 2 ? gate_up[1].data : gate_up[0].data + call.tiles * call.tile_bytes,
      .rows = hidden};
  call.activation = activation;
}

void set_add(StreamCall& call, const WeightView& weight, Matrix out, const AddTo& add) {
  call.parts[0] = {.data = weight.data, .rows = weight.rows};
  call.tiles = divided(weight.rows, tiles::tile_rows);
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
  call.router_logits = add.router_logits;
}

__global__ void __launch_bounds__(1024) finish_norm_kernel(const Elements row, int width, DelayedNorm norm) {
  wait_for_previous();
  let_next_start();
  const int lane = static_cast<int>(threadIdx.x) % 32;
  SquareParts squares;
  squares.load(norm, lane);
  const float inverse = squares.inverse_rms(norm, lane);
  for (int i = static_cast<int>(threadIdx.x); i < width; i += static_cast<int>(blockDim.x)) {
    row.put(i, row.get(i) * inverse);
  }
}

}  // namespace

void finish_norm(const Queue& queue, Matrix row, const DelayedNorm& norm) {
  launch(queue, {.threads = 1024}, finish_norm_kernel, elements_of(row), row.cols, norm);
}

int stream_blocks(const Queue& queue, int rows) {
  return std::min(queue.multiprocessors, divided(rows, tiles::tile_rows));
}

bool has_stream(const Queue& queue, const WeightView& weight, int vectors) {
  return queue.overlaps && weight.layout == Layout::tiled && vectors <= stream_most_active &&
         shape_of(queue, weight, vectors).has_value();
}

bool stream_takes_router(const Queue& queue, const Weight& router) {
  const bool plain = router.format == WeightFormat::f32 || router.format == WeightFormat::bf16;
  if (!plain || router.rows > stream_most_experts) return false;
  const int tiles = divided(divided(router.cols, tiles::tile_rows), queue.multiprocessors);  // of a block
  const int rows = tiles::tile_rows * tiles;
  return rows <= stream_router_rows && divided(rows, router_lanes(router.rows)) <= RouterColumns::most;
}

void stream_linear(const Queue& queue, std::span<const WeightView> parts, Matrix out, int column,
                   const StreamInput& in, const float* bias) {
  Start start = start_of(queue, parts, in, 1);
  StreamCall& call = start.call;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    call.parts[i] = {
        .data = parts[i].data, .rows = parts[i].rows, .column = column, .first_tile = call.tiles};
    column += parts[i].rows;
    call.tiles += divided(parts[i].rows, tiles::tile_rows);
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
