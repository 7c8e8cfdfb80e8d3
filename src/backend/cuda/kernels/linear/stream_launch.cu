// The codec for a weight, how its rows are divided, and the arguments of each product.
#include <cmath>
#include <optional>

#include "backend/cuda/kernels/linear/stream_kernel.cuh"

namespace inferno::cuda {
namespace {

// Shared memory of an SM that stays free, so that a block of attention_decode.cu can be resident beside this
// kernel.
constexpr int smem_for_attention = 25 << 10;

// Bytes in flight per SM: enough to saturate memory. With more, what the kernel reads besides its weights
// would queue after them.
constexpr int bytes_in_flight = 64 << 10;

StreamLauncher* launcher_for(WeightFormat format) {
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

// Chunks of a stage per warp: MXFP4 uses an mma column for each block of four chunks.
int max_each(WeightFormat format) {
  if (format == WeightFormat::mxfp4) return 4;
  return format == WeightFormat::q8_0 ? 2 : 1;
}

std::optional<StreamShape> shape_of(const Queue& queue, const WeightView& weight, int vectors) {
  const tiles::Chunk chunk = tiles::chunk_of(weight.format);
  if (launcher_for(weight.format) == nullptr || weight.cols % chunk.cols != 0) return std::nullopt;
  StreamShape shape;
  shape.chunks = weight.cols / chunk.cols;
  shape.chunk_bytes = chunk.bytes;
  shape.parts = divided(shape.chunks, stream_warps * max_each(weight.format));
  shape.part_chunks = divided(shape.chunks, shape.parts);
  shape.parts = divided(shape.chunks, shape.part_chunks);
  shape.each = divided(shape.part_chunks, stream_warps);
  shape.used = divided(shape.part_chunks, shape.each);
  const int available = queue.shared_limit - smem_for_attention -
                        StreamSmem::fixed_bytes(vectors * weight.cols) - StreamSmem::ring_padding;
  shape.stages = std::min(stream_max_stages, std::max(0, available) / shape.stage_bytes());
  shape.ahead = std::clamp(bytes_in_flight / shape.stage_bytes(), 2, std::max(2, shape.stages));
  shape.early = shape.ahead;
  if (shape.stages < 3) return std::nullopt;
  return shape;
}

struct Start {
  StreamLauncher* start;
  StreamCall call;
};

Start start_of(const Queue& queue, std::span<const WeightView> parts, const StreamInput& in, int vectors) {
  const WeightView& first = parts.front();
  Start start = {launcher_for(first.format), {}};
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

void launch_product(const Queue& queue, Start& start, int tiles, StreamMode mode) {
  StreamCall& call = start.call;
  const int blocks = std::min(queue.multiprocessors, tiles);
  call.tiles_each = tiles / blocks;
  call.tiles_remainder = tiles % blocks;
  const int shared = StreamSmem::fixed_bytes(call.vectors * call.cols) +
                     call.shape.stages * call.shape.stage_bytes() + StreamSmem::ring_padding;
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

// All rows that a thread loads are within stream_router_rows.
int router_shift(int experts) {
  int shift = 0;
  while (shift < 4 && (experts << (shift + 1)) <= stream_threads - 32) ++shift;
  return shift;
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
  call.router_shift = router_shift(add.router->rows);
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

int stream_blocks(const Queue& queue, int rows) {
  return std::min(queue.multiprocessors, divided(rows, tiles::tile_rows));
}

bool has_stream(const Queue& queue, const WeightView& weight, int vectors) {
  return queue.overlaps && weight.layout == Layout::tiled && vectors <= stream_max_active &&
         shape_of(queue, weight, vectors).has_value();
}

bool stream_takes_router(const Queue& queue, const Weight& router) {
  const bool plain = router.format == WeightFormat::f32 || router.format == WeightFormat::bf16;
  if (!plain || router.rows > stream_max_experts) return false;
  const int tiles = divided(divided(router.cols, tiles::tile_rows), queue.multiprocessors);  // per block
  const int rows = tiles::tile_rows * tiles;
  return rows <= stream_router_rows &&
         divided(rows, 1 << router_shift(router.rows)) <= RouterSlice::max_columns;
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
  if (add.router != nullptr) start.call.shape.early = 1;  // attention is still reading the KV cache
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
  call.shape.early = 1;
  if (down.format == WeightFormat::mxfp4) call.shape.ahead = 1;
  if (routing.hidden_scale > 0.0f) call.in_factor = 1.0f / routing.hidden_scale;
  call.bias = floats_of(linear.bias);
  call.bias_stride = linear.bias.cols;
  launch_product(queue, start, divided(down.rows, tiles::tile_rows), StreamMode::combine);
}

}  // namespace inferno::cuda
