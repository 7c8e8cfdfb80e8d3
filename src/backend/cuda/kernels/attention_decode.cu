// Attention of one new token for each sequence, its rotation included. A block takes one sequence, the query
// heads that share a key head, and a stretch of the positions; its four warps take tiles of 16 positions in
// turn. Queries are the tensor cores' operand of sixteen rows (heads; eight of them are used), keys and
// values the other. Bound by latency: old keys and values are asked for before the kernel ahead has finished,
// and the new ones never make the way through memory.
#include "backend/cuda/device/mma.cuh"
#include "backend/cuda/kernels/attention_decode.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

using namespace decode;

__device__ DecodePlace place_of(const DecodeCall& call) {
  DecodePlace at;
  const int groups = call.kv_heads * call.chunks, group = static_cast<int>(blockIdx.x) % groups;
  at.row = static_cast<int>(blockIdx.x) / groups;
  at.split = static_cast<int>(blockIdx.y);
  at.kv_head = group / call.chunks;
  at.chunk = group % call.chunks;
  const int shared = call.heads / call.kv_heads;
  at.first_head = at.kv_head * shared + at.chunk * most_heads;
  at.heads = min(most_heads, (at.kv_head + 1) * shared - at.first_head);
  at.own = call.map.positions[at.row];
  at.first = call.map.first_visible(at.own);
  const int count = at.own + 1 - at.first;
  at.splits = min(call.splits, (count + stretch_least - 1) / stretch_least);
  const int each = ((count + at.splits - 1) / at.splits + tile - 1) / tile * tile;
  at.begin = at.first + at.split * each;
  at.end = min(at.own + 1, at.begin + each);
  return at;
}

// One head, rotated and normalized, to shared memory and, if `cached` is given, to the cache.
template <int Dim>
__device__ void rotate_head(const DecodeCall& call, const float* from, const float* gain, int position,
                            __nv_bfloat16* to, __nv_bfloat16* cached, int lane) {
  constexpr int each = Dim / 32;
  float inverse = 1.0f;
  if (call.normalizes) {
    float square = 0.0f;
#pragma unroll
    for (int i = 0; i < each; ++i) square += from[lane + 32 * i] * from[lane + 32 * i];
    inverse = rsqrtf(warp_sum(square) / static_cast<float>(Dim) + call.epsilon);
  }
  const auto value = [&](int i) { return __ldcg(from + i) * inverse * (call.normalizes ? gain[i] : 1.0f); };
  const auto store = [&](int i, float x) {
    const __nv_bfloat16 rounded = __float2bfloat16_rn(x);
    to[i] = rounded;
    if (cached != nullptr) cached[i] = rounded;
  };
  const float* cosines = call.table + std::int64_t{position} * 2 * call.half;
  for (int i = lane; i < call.half; i += 32) {
    const float a = value(i), b = value(call.half + i), c = cosines[i], s = cosines[call.half + i];
    store(i, a * c - b * s);
    store(call.half + i, b * c + a * s);
  }
  for (int i = 2 * call.half + lane; i < Dim; i += 32) store(i, value(i));
}

// Queries of the block's heads; the new key and value where the block has the new position.
template <int Dim>
__device__ void read_new(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const float* row = call.qkv + std::int64_t{at.row} * (call.heads + 2 * call.kv_heads) * Dim;
  for (int h = warp; h < most_heads; h += warps) {
    if (h < at.heads) {
      rotate_head<Dim>(call, row + (at.first_head + h) * Dim, call.q_norm, at.own, room.queries[h], nullptr,
                       lane);
    } else {
      for (int i = lane; i < Dim; i += 32) room.queries[h][i] = __float2bfloat16_rn(0.0f);
    }
  }
  if (at.end != at.own + 1) return;
  const std::int64_t slot = (std::int64_t{call.slots[at.row]} * call.kv_heads + at.kv_head) * Dim;
  if (warp == warps - 1) {
    rotate_head<Dim>(call, row + (call.heads + at.kv_head) * Dim, call.k_norm, at.own, room.new_key,
                     at.chunk == 0 ? call.keys + slot : nullptr, lane);
  } else if (warp == warps - 2) {
    const float* value = row + (call.heads + call.kv_heads + at.kv_head) * Dim;
    for (int i = lane; i < Dim; i += 32) {
      room.new_value[i] = __float2bfloat16_rn(__ldcg(value + i));
      if (at.chunk == 0) call.values[slot + i] = room.new_value[i];
    }
  }
}

// A warp's tile: keys in registers as the tensor cores want them (lane (g, t): positions g and g + 8), values
// on their way to shared memory. Positions that are not there, or are new, give zeros.
template <int Dim>
struct KeyTile {
  uint4 keys[2][Dim / 32];

  __device__ void fetch(const DecodeCall& call, const DecodePlace& at, int first, __nv_bfloat16* values,
                        int lane) {
    const int g = lane / 4, t = lane % 4;
    const std::int64_t stride = std::int64_t{call.kv_heads} * Dim, offset = std::int64_t{at.kv_head} * Dim;
    std::int64_t rows[2];
    bool old[2];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      const int position = first + g + 8 * i;
      old[i] = position < min(at.end, at.own);
      rows[i] = call.map.row(at.row, old[i] ? position : at.first) * stride + offset;
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) {
        const auto* from = reinterpret_cast<const uint4*>(call.keys + rows[i] + 32 * c + 8 * t);
        keys[i][c] = old[i] ? *from : make_uint4(0, 0, 0, 0);
      }
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) {
        copy_later(values + (g + 8 * i) * DecodeRoom<Dim>::value_row + 32 * c + 8 * t,
                   call.values + rows[i] + 32 * c + 8 * t, old[i]);
      }
    }
    close_copies();
  }
  // The new position, if it is one of the tile's.
  __device__ void insert_new(const DecodePlace& at, const DecodeRoom<Dim>& room, int first,
                             __nv_bfloat16* values, int lane) {
    const int place = at.own - first;
    if (place < 0 || place >= tile || at.end != at.own + 1) return;
    if (lane / 4 == place % 8) {
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) {
        const uint4 fresh = *reinterpret_cast<const uint4*>(room.new_key + 32 * c + 8 * (lane % 4));
        if (place < 8) keys[0][c] = fresh;
        if (place >= 8) keys[1][c] = fresh;
      }
    }
    for (int i = lane; i < Dim; i += 32) values[place * DecodeRoom<Dim>::value_row + i] = room.new_value[i];
    __syncwarp();
  }
};

// Of the heads (rows) g; every lane has the same top, the sum is the lane's own part.
template <int Dim>
struct DecodeState {
  float top = -INFINITY, sum = 0.0f;
  float out[Dim / 8][4] = {};

  __device__ void score(float (&scores)[4], const KeyTile<Dim>& keys,
                        const uint4 (&queries)[Dim / 32]) const {
    float s[2][4] = {};
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int c = 0; c < Dim / 32; ++c) {
        multiply_add(s[i], queries[c].x, 0, queries[c].y, 0, keys.keys[i][c].x, keys.keys[i][c].y);
        multiply_add(s[i], queries[c].z, 0, queries[c].w, 0, keys.keys[i][c].z, keys.keys[i][c].w);
      }
    }
    scores[0] = s[0][0], scores[1] = s[0][1], scores[2] = s[1][0], scores[3] = s[1][1];
  }
  __device__ void add(float (&scores)[4], float scale, int first, int end, const __nv_bfloat16* values,
                      int lane) {
    float most = top;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int position = first + i / 2 * 8 + 2 * (lane % 4) + i % 2;
      scores[i] = position < end ? scores[i] * scale : -INFINITY;
      most = fmaxf(most, scores[i]);
    }
    most = fmaxf(most, __shfl_xor_sync(full_warp, most, 1));
    most = fmaxf(most, __shfl_xor_sync(full_warp, most, 2));
    const float shrink = __expf(top - most);
    top = most;
    sum *= shrink;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[i] = __expf(scores[i] - most);
      sum += scores[i];
    }
    const std::uint32_t low = packed(scores[0], scores[1]), high = packed(scores[2], scores[3]);
#pragma unroll
    for (int j = 0; j < Dim / 8; j += 2) {
      std::uint32_t v[4];  // positions 0 to 7 and 8 to 15 of dimensions 8 j, then of 8 j + 8
      load_matrices_transposed(v, values + (lane % 16) * DecodeRoom<Dim>::value_row + 8 * j + lane / 16 * 8);
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        out[j + i][0] *= shrink;
        out[j + i][1] *= shrink;
        multiply_add(out[j + i], low, 0, high, 0, v[2 * i], v[2 * i + 1]);
      }
    }
  }
};

template <int Dim>
__device__ void attend_tiles_of_warp(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room,
                                     KeyTile<Dim>& keys, int warp, int lane) {
  uint4 queries[Dim / 32];
#pragma unroll
  for (int c = 0; c < Dim / 32; ++c) {
    queries[c] = *reinterpret_cast<const uint4*>(&room.queries[lane / 4][32 * c + 8 * (lane % 4)]);
  }
  DecodeState<Dim> state;
  int buffer = 0;
  for (int first = at.begin + warp * tile; first < at.end; first += warps * tile, buffer ^= 1) {
    __nv_bfloat16* values = room.of_warp[warp].values[buffer][0];
    wait_for_copies<0>();
    __syncwarp();
    keys.insert_new(at, room, first, values, lane);
    float scores[4];
    state.score(scores, keys, queries);
    const int next = first + warps * tile;
    if (next < at.end) keys.fetch(call, at, next, room.of_warp[warp].values[buffer ^ 1][0], lane);
    state.add(scores, call.scale, first, at.end, values, lane);
  }
  state.sum += __shfl_xor_sync(full_warp, state.sum, 1);
  state.sum += __shfl_xor_sync(full_warp, state.sum, 2);
  __syncwarp();  // results take the place of values
  float* to = room.of_warp[warp].results[lane / 4];
#pragma unroll
  for (int j = 0; j < Dim / 8; ++j) {
    to[8 * j + 2 * (lane % 4)] = state.out[j][0];
    to[8 * j + 2 * (lane % 4) + 1] = state.out[j][1];
  }
  if (lane % 4 == 0) {
    to[Dim] = state.top;
    to[Dim + 1] = state.sum;
  }
}

template <int Dim>
__global__ void __launch_bounds__(32 * warps) decode_kernel(const __grid_constant__ DecodeCall call) {
  __shared__ __align__(16) DecodeRoom<Dim> room;
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  let_next_start();
  // Positions and tables were uploaded before the step began, and older keys and values are from other steps.
  const DecodePlace at = place_of(call);
  const bool idle = at.split >= at.splits;
  KeyTile<Dim> keys;
  if (!idle && at.begin + warp * tile < at.end) {
    keys.fetch(call, at, at.begin + warp * tile, room.of_warp[warp].values[0][0], lane);
  }
  wait_for_previous();
  if (idle) return;
  read_new<Dim>(call, at, room);
  __syncthreads();
  attend_tiles_of_warp<Dim>(call, at, room, keys, warp, lane);
  __syncthreads();
  constexpr std::int64_t floats = most_heads * (Dim + 2);
  if (at.splits == 1) {
    return write_out<Dim>(call, at, room, room.of_warp[0].results[0], DecodeRoom<Dim>::result_stride, warps);
  }
  float* all = call.partial + std::int64_t{blockIdx.x} * call.splits * floats;
  if (leave_share<Dim>(call, at, room, all + at.split * floats)) {
    write_out<Dim>(call, at, room, all, floats, at.splits);
  }
}

}  // namespace

bool takes_decode(const AttentionSpec& spec, Matrix rope_table, const StepInputs& step, DType cache) {
  return cache == DType::bf16 && (spec.head_dim == 64 || spec.head_dim == 128) &&
         step.tokens.rows == step.context_len.rows && rope_table.cols <= spec.head_dim;
}

void attend_decode(const Queue& queue, Matrix out, Matrix qkv, Matrix rope_table, const AttentionCall& call,
                   const AttendScratch& scratch) {
  const AttentionSpec& spec = call.spec;
  const int shared = spec.heads / spec.kv_heads, chunks = (shared + most_heads - 1) / most_heads;
  const std::int64_t blocks = std::int64_t{out.rows} * spec.kv_heads * chunks;
  const std::int64_t most = std::int64_t{call.group.block_table.cols} * call.step.block_size;
  const std::int64_t longest = spec.window > 0 ? std::min<std::int64_t>(most, spec.window) : most;
  const std::int64_t useful = (longest + stretch_least - 1) / stretch_least;
  const std::int64_t wanted = (4 * queue.multiprocessors + blocks - 1) / blocks;
  const std::int64_t fits = scratch.partial_floats / (blocks * most_heads * (spec.head_dim + 2));
  const std::int64_t splits =
      blocks > scratch.ticket_count
          ? 1
          : std::clamp<std::int64_t>(std::min({wanted, useful, fits}), 1, attend_most_splits);
  const DecodeCall what = {.map = cache_map(call),
                           .out = elements_of(out),
                           .qkv = floats_of(qkv),
                           .table = floats_of(rope_table),
                           .q_norm = floats_of(call.weights.q_norm),
                           .k_norm = floats_of(call.weights.k_norm),
                           .sinks = spec.sinks ? floats_of(call.weights.sinks) : nullptr,
                           .keys = reinterpret_cast<__nv_bfloat16*>(call.cache.keys.data),
                           .values = reinterpret_cast<__nv_bfloat16*>(call.cache.values.data),
                           .slots = integers_of(call.group.slots),
                           .heads = spec.heads,
                           .kv_heads = spec.kv_heads,
                           .half = rope_table ? rope_table.cols / 2 : 0,
                           .chunks = chunks,
                           .splits = static_cast<int>(splits),
                           .scale = spec.scale,
                           .epsilon = call.weights.norm_epsilon,
                           .normalizes = spec.qk_norm,
                           .partial = scratch.partial,
                           .tickets = scratch.tickets};
  const Shape shape = {.grid = dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(splits)),
                       .threads = 32 * warps};
  if (spec.head_dim == 64) return launch(queue, shape, decode_kernel<64>, what);
  launch(queue, shape, decode_kernel<128>, what);
}

}  // namespace inferno::cuda
