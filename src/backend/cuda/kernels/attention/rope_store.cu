// rotate_and_store: RoPE of queries and keys, and the store of keys and values to the cache. A warp per head
// of each row, V included; bound by latency. Heads of 64 or 128 dimensions that rotate completely and whose
// cache is bf16 take a vectorized path, four dimensions per load.
#include "backend/cuda/device/cached.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/attention/attention.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

constexpr int max_dims = 256;  // of a head: CudaBackend::refuses()

struct RopeCall {
  Elements qkv;
  Cached keys, values;
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

// A lane takes pairs and, after the rotated dimensions, single elements: it only reads elements that it
// writes. `room`: for a head as it was before it is rounded to the type of qkv.
__device__ void rotate_head(const RopeCall& call, std::int64_t row, int h, int lane, float* room) {
  const std::int64_t head =
      row * (call.heads + 2 * call.kv_heads) * call.head_dim + std::int64_t{h} * call.head_dim;
  const bool is_key = h >= call.heads;
  const float inverse = call.normalizes ? inverse_rms(call, head, lane) : 1.0f;
  const float* gain = is_key ? call.k_norm : call.q_norm;
  const auto value = [&](int i) {
    return call.qkv.get(head + i) * inverse * (call.normalizes ? gain[i] : 1.0f);
  };
  const auto store = [&](int i, float x) {
    call.qkv.put(head + i, x);
    if (is_key) room[i] = x;
  };
  const float* cosines = call.table + std::int64_t{call.positions[row]} * 2 * call.half;
  for (int i = lane; i < call.half; i += 32) {
    const float a = value(i), b = value(call.half + i);
    const float c = cosines[i], s = cosines[call.half + i];
    store(i, a * c - b * s);
    store(call.half + i, b * c + a * s);
  }
  for (int i = 2 * call.half + lane; i < call.head_dim; i += 32) store(i, value(i));
  if (!is_key) return;
  __syncwarp();
  store_head(call.keys, call.slots[row], h - call.heads, call.head_dim, lane, [&](int i) { return room[i]; });
}

constexpr int warps = 8;

__device__ void copy_value(const RopeCall& call, std::int64_t row, int h, int lane) {
  const int all = call.heads + 2 * call.kv_heads;
  const std::int64_t from = (row * all + h) * call.head_dim;
  store_head(call.values, call.slots[row], h - call.heads - call.kv_heads, call.head_dim, lane,
             [&](int i) { return call.qkv.get(from + i); });
}

__global__ void __launch_bounds__(32 * warps) rotate_kernel(const RopeCall call) {
  __shared__ float room[warps][max_dims];
  wait_for_previous();
  let_next_start();
  const std::int64_t row = blockIdx.x;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int h = static_cast<int>(blockIdx.y) * warps + warp;
  if (h < call.heads + call.kv_heads) {
    rotate_head(call, row, h, lane, room[warp]);
  } else if (h < call.heads + 2 * call.kv_heads) {
    copy_value(call, row, h, lane);
  }
}

__device__ float4 four_at(const float* from) {
  return *reinterpret_cast<const float4*>(from);
}
__device__ float4 scaled(float4 x, float factor, float4 gain) {
  return {x.x * factor * gain.x, x.y * factor * gain.y, x.z * factor * gain.z, x.w * factor * gain.w};
}
// a * c + b * s, element by element.
__device__ float4 rotated(float4 a, float4 c, float4 b, float4 s) {
  return {a.x * c.x + b.x * s.x, a.y * c.y + b.y * s.y, a.z * c.z + b.z * s.z, a.w * c.w + b.w * s.w};
}
__device__ float4 negated(float4 x) {
  return {-x.x, -x.y, -x.z, -x.w};
}
__device__ float squares(float4 x) {
  return x.x * x.x + x.y * x.y + x.z * x.z + x.w * x.w;
}
__device__ void put_four(const Cached& to, std::int64_t at, float4 x) {
  *reinterpret_cast<uint2*>(to.data + at * 2) = make_uint2(pack_bf16x2(x.x, x.y), pack_bf16x2(x.z, x.w));
}

// Lane l of a head has dimensions 4 l to 4 l + 3 and their rotation partners half a head further.
template <int Dims>
__global__ void __launch_bounds__(32 * warps) rotate_whole_kernel(const RopeCall call) {
  constexpr int lanes = Dims / 8, half = Dims / 2, heads_at_once = 32 * warps / lanes;
  wait_for_previous();
  let_next_start();
  const int l = static_cast<int>(threadIdx.x) % lanes, all = call.heads + 2 * call.kv_heads;
  const int h = static_cast<int>(blockIdx.y) * heads_at_once + static_cast<int>(threadIdx.x) / lanes;
  const bool exists = h < all;
  const std::int64_t row = blockIdx.x, at = (row * all + min(h, all - 1)) * Dims + 4 * l;
  float* own = reinterpret_cast<float*>(call.qkv.data) + at;
  float4 a = four_at(own), b = four_at(own + half);
  if (call.normalizes) {  // all lanes take part in the shuffle, also those of V and past the last head
    float square = squares(a) + squares(b);
#pragma unroll
    for (int offset = lanes / 2; offset > 0; offset >>= 1)
      square += __shfl_xor_sync(full_warp, square, offset);
    const float inverse = rsqrtf(square / static_cast<float>(Dims) + call.epsilon);
    const float* gain = h < call.heads ? call.q_norm : call.k_norm;
    if (h < call.heads + call.kv_heads) {
      a = scaled(a, inverse, four_at(gain + 4 * l));
      b = scaled(b, inverse, four_at(gain + half + 4 * l));
    }
  }
  if (!exists) return;
  const std::int64_t slot = std::int64_t{call.slots[row]} * call.kv_heads;
  if (h >= call.heads + call.kv_heads) {
    const std::int64_t to = (slot + h - call.heads - call.kv_heads) * Dims + 4 * l;
    put_four(call.values, to, a);
    put_four(call.values, to + half, b);
    return;
  }
  const float* cosines = call.table + std::int64_t{call.positions[row]} * Dims + 4 * l;
  const float4 c = four_at(cosines), s = four_at(cosines + half);
  const float4 low = rotated(a, c, negated(b), s), high = rotated(b, c, a, s);
  *reinterpret_cast<float4*>(own) = low;
  *reinterpret_cast<float4*>(own + half) = high;
  if (h < call.heads) return;
  const std::int64_t to = (slot + h - call.heads) * Dims + 4 * l;
  put_four(call.keys, to, low);
  put_four(call.keys, to + half, high);
}

bool is_whole(const RopeCall& call, int dims) {
  const auto is_aligned = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; };
  return call.head_dim == dims && 2 * call.half == dims && call.qkv.wide && call.keys.type == DType::bf16 &&
         call.values.type == DType::bf16 && is_aligned(call.qkv.data) && is_aligned(call.keys.data) &&
         is_aligned(call.values.data) && is_aligned(call.table) && is_aligned(call.q_norm) &&
         is_aligned(call.k_norm);
}

template <int Dims>
void start_whole(const Queue& queue, const RopeCall& call, int rows) {
  const int heads_at_once = 32 * warps / (Dims / 8);
  const dim3 grid(static_cast<unsigned>(rows), blocks_for(call.heads + 2 * call.kv_heads, heads_at_once));
  launch(queue, {.grid = grid, .threads = 32 * warps}, rotate_whole_kernel<Dims>, call);
}

}  // namespace

void rotate_and_store(const Queue& queue, Matrix qkv, Matrix rope_table, const AttentionCall& call) {
  const AttentionSpec& spec = call.spec;
  const RopeCall what = {.qkv = elements_of(qkv),
                         .keys = cached(call.cache.keys, call.weights.key_scales, spec.head_dim),
                         .values = cached(call.cache.values, call.weights.value_scales, spec.head_dim),
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
  if (is_whole(what, 64)) return start_whole<64>(queue, what, qkv.rows);
  if (is_whole(what, 128)) return start_whole<128>(queue, what, qkv.rows);
  const dim3 grid(static_cast<unsigned>(qkv.rows), blocks_for(spec.heads + 2 * spec.kv_heads, warps));
  launch(queue, {.grid = grid, .threads = 32 * warps}, rotate_kernel, what);
}

}  // namespace inferno::cuda
