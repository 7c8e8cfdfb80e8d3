// rotate_and_store: a warp for each head of each row, those of V included: bound by latency, so nothing
// waits.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct RopeCall {
  Elements qkv, keys, values;
  const float *table, *q_norm, *k_norm;
  const std::int32_t *positions, *slots;
  int heads, kv_heads, head_dim, half;
  float epsilon;
  bool normalizes;
};

// 1 / rms of the head, for all lanes.
__device__ float inverse_rms(const RopeCall& call, std::int64_t head, int lane) {
  float square = 0.0f;
  for (int i = lane; i < call.head_dim; i += 32) {
    const float x = call.qkv.get(head + i);
    square += x * x;
  }
  return rsqrtf(warp_sum(square) / static_cast<float>(call.head_dim) + call.epsilon);
}

// Each lane takes pairs and, behind the rotated dimensions, single elements: it reads what it writes.
__device__ void finish_head(const RopeCall& call, std::int64_t row, int h, int lane) {
  const std::int64_t head =
      row * (call.heads + 2 * call.kv_heads) * call.head_dim + std::int64_t{h} * call.head_dim;
  const bool is_key = h >= call.heads;
  const std::int64_t cached = std::int64_t{call.slots[row]} * call.kv_heads * call.head_dim +
                              std::int64_t{h - call.heads} * call.head_dim;
  const float inverse = call.normalizes ? inverse_rms(call, head, lane) : 1.0f;
  const float* gain = is_key ? call.k_norm : call.q_norm;
  const auto value = [&](int i) {
    return call.qkv.get(head + i) * inverse * (call.normalizes ? gain[i] : 1.0f);
  };
  const auto store = [&](int i, float x) {
    call.qkv.put(head + i, x);
    if (is_key) call.keys.put(cached + i, x);
  };
  const float* cosines = call.table + std::int64_t{call.positions[row]} * 2 * call.half;
  for (int i = lane; i < call.half; i += 32) {
    const float a = value(i), b = value(call.half + i);
    const float c = cosines[i], s = cosines[call.half + i];
    store(i, a * c - b * s);
    store(call.half + i, b * c + a * s);
  }
  for (int i = 2 * call.half + lane; i < call.head_dim; i += 32) store(i, value(i));
}

constexpr int warps = 8;

__device__ void copy_value(const RopeCall& call, std::int64_t row, int h, int lane) {
  const int all = call.heads + 2 * call.kv_heads;
  const std::int64_t from = (row * all + h) * call.head_dim;
  const int own = h - call.heads - call.kv_heads;
  const std::int64_t to = (std::int64_t{call.slots[row]} * call.kv_heads + own) * call.head_dim;
  for (int i = lane; i < call.head_dim; i += 32) call.values.put(to + i, call.qkv.get(from + i));
}

__global__ void __launch_bounds__(32 * warps) rotate_kernel(const RopeCall call) {
  wait_for_previous();
  let_next_start();
  const std::int64_t row = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int h = static_cast<int>(blockIdx.y) * warps + static_cast<int>(threadIdx.x) / 32;
  if (h < call.heads + call.kv_heads) {
    finish_head(call, row, h, lane);
  } else if (h < call.heads + 2 * call.kv_heads) {
    copy_value(call, row, h, lane);
  }
}

}  // namespace

void rotate_and_store(const Queue& queue, Matrix qkv, Matrix rope_table, const AttentionCall& call) {
  const AttentionSpec& spec = call.spec;
  const RopeCall what = {.qkv = elements_of(qkv),
                         .keys = elements_of(call.cache.keys),
                         .values = elements_of(call.cache.values),
                         .table = floats_of(rope_table),
                         .q_norm = floats_of(call.weights.q_norm),
                         .k_norm = floats_of(call.weights.k_norm),
                         .positions = integers_of(call.step.positions),
                         .slots = integers_of(call.group.slots),
                         .heads = spec.heads,
                         .kv_heads = spec.kv_heads,
                         .head_dim = spec.head_dim,
                         .half = rope_table ? rope_table.cols / 2 : 0,
                         .epsilon = call.weights.norm_epsilon,
                         .normalizes = spec.qk_norm};
  const dim3 grid(static_cast<unsigned>(qkv.rows), blocks_for(spec.heads + 2 * spec.kv_heads, warps));
  launch(queue, {.grid = grid, .threads = 32 * warps}, rotate_kernel, what);
}

}  // namespace inferno::cuda
