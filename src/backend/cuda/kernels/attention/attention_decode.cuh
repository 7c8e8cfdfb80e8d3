// The parts of attention_decode.cu: arguments, a block's share of the work, shared memory, loads of keys and
// values, RoPE of the new token, and the reduction over warps and blocks.
#pragma once

#include <cuda_bf16.h>

#include "backend/cuda/device/cached.cuh"
#include "backend/cuda/device/cluster.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/ptx.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/attention/attention.h"

namespace inferno::cuda::decode {

constexpr int warps = 4, max_heads = 8, max_cluster = 16, max_clusters = 8;
constexpr float log2_e = 1.4426950408889634f;

struct DecodeCall {
  Elements out;
  const float* qkv;
  const float *table, *q_norm, *k_norm, *sinks;
  Cached keys, values;
  const std::int32_t *slots, *positions, *block_table;
  int table_cols, block_shift, window;
  int heads, kv_heads, half, chunks;  // half: half the number of rotated dimensions
  int splits, clusters;               // blocks of a cluster, a power of two; clusters per group of heads
  float scale, epsilon;
  bool normalizes;
  float* partial;
  std::uint32_t* tickets;
};

// Each warp takes `step` positions at a time: keys in 32 registers per lane, values in 4 KB of shared memory.
template <int Dim>
struct DecodeShape {
  static constexpr int tiles = 128 / Dim;  // tiles of 16 positions
  static constexpr int step = 16 * tiles, pass = warps * step;
};

// The positions are split into `splits` ranges for each of the `clusters` that have work.
struct DecodeWork {
  int row, kv_head, first_head, heads, chunk, splits, clusters, own, begin, end;

  __device__ static int split() { return static_cast<int>(blockIdx.y); }
  __device__ static int cluster() { return static_cast<int>(blockIdx.z); }
  __device__ bool idle() const { return split() >= splits || cluster() >= clusters; }
};

// A block's result for half the dimensions of a head: sums of values weighted by 2^(score - top).
template <int Dim>
struct Partial {
  float values[Dim / 2];
  float top, sum, unused[2];
};
constexpr int parts = 2 * max_heads;

template <int Dim>
struct DecodeSmem {
  union PerWarp {
    __nv_bfloat16 values[DecodeShape<Dim>::step * Dim];
    float results[max_heads * Dim];
  };
  PerWarp per_warp[warps];
  Partial<Dim> received[parts];                    // from the blocks of the cluster
  float2 tops[warps][max_heads];                   // running maximum and sum of weights
  std::byte new_key[2 * Dim], new_value[2 * Dim];  // as stored
  float angles[Dim];
  DecodeWork work;  // used again at the end; not kept in registers meanwhile
  bool last;
};

template <int Dim>
__device__ DecodeWork work_of(const DecodeCall& call) {
  DecodeWork at;
  const int groups = call.kv_heads * call.chunks, group = static_cast<int>(blockIdx.x) % groups;
  at.row = static_cast<int>(blockIdx.x) / groups;
  at.own = call.positions[at.row];
  at.kv_head = group / call.chunks;
  at.chunk = group % call.chunks;
  const int shared = call.heads / call.kv_heads;
  at.first_head = at.kv_head * shared + at.chunk * max_heads;
  at.heads = min(max_heads, (at.kv_head + 1) * shared - at.first_head);
  const int first = call.window > 0 ? max(0, at.own - call.window + 1) : 0;
  const int count = at.own + 1 - first,
            passes = (count + DecodeShape<Dim>::pass - 1) / DecodeShape<Dim>::pass;
  // splits is a power of two, so that heads are distributed evenly. A second cluster costs a round trip
  // through global memory, worth four to eight passes. No range is empty: there are more positions than
  // ranges squared.
  at.splits = min(call.splits, 1 << (32 - __clz(passes - 1)));
  const bool is_long = passes > call.splits * (call.clusters > 2 ? 4 : 8);
  at.clusters = is_long ? min(call.clusters, passes / (2 * call.splits)) : 1;
  const int ranges = at.splits * at.clusters, each = (count + ranges - 1) / ranges;
  at.begin = first + (at.cluster() * at.splits + at.split()) * each;
  at.end = min(at.own + 1, at.begin + each);
  return at;
}

// Swizzled address of eight elements of a value row: the eight rows read by ldmatrix.trans are in different
// banks.
template <int Dim>
__device__ __nv_bfloat16* value_chunk(__nv_bfloat16* values, int row, int chunk) {
  return values + row * Dim + (((chunk & 7) ^ (row & 7)) + (chunk & 8)) * 8;
}

// Likewise for dimension d of a head's results (d is a multiple of four if four are read at once).
template <int Dim>
__device__ float* result_at(float* results, int head, int d) {
  return results + head * Dim + (d ^ (head / 2 % 4 * 8));
}

// One step of a warp: keys in registers as an mma operand (lane (g, t): positions g, g + 8, ...), values on
// their way to shared memory: at once if they are bf16, otherwise through registers. Missing positions and
// the new one are zeros.
template <int Dim, DType Type>
struct KeyValueStep {
  using Run = StoredRun<Type>;
  static constexpr bool is_bf16 = Type == DType::bf16;
  static constexpr int rows = 2 * DecodeShape<Dim>::tiles, chunks = Dim / 32;
  Run keys[rows][chunks];
  Run values[is_bf16 ? 1 : rows][chunks];
  std::int32_t at_row[rows];
  int old;  // number of the warp's positions, from the first, that are in the cache

  __device__ static std::int32_t row_of(const DecodeCall& call, const DecodeWork& at, int position) {
    const std::int32_t* table = call.block_table + std::int64_t{at.row} * call.table_cols;
    return (table[position >> call.block_shift] << call.block_shift) +
           (position & ((1 << call.block_shift) - 1));
  }
  __device__ void find(const DecodeCall& call, const DecodeWork& at, int first, int lane) {
    old = min(at.end, at.own) - first;
#pragma unroll
    for (int i = 0; i < rows; ++i) at_row[i] = row_of(call, at, min(first + lane / 4 + 8 * i, at.own));
  }
  __device__ void fetch_keys(const DecodeCall& call, const DecodeWork& at, int lane) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const std::byte* head = call.keys.head(at_row[i], at.kv_head);
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        keys[i][c] = lane / 4 + 8 * i < old ? Run::fetch(head, c, lane % 4) : Run{};
      }
    }
  }
  __device__ void fetch_values(const DecodeCall& call, const DecodeWork& at, __nv_bfloat16* shared,
                               int lane) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int row = lane / 4 + 8 * i;
      const std::byte* head = call.values.head(at_row[i], at.kv_head);
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        if constexpr (is_bf16) {
          cp_async(value_chunk<Dim>(shared, row, 4 * c + lane % 4), head + 64 * c + 16 * (lane % 4),
                   row < old);
        } else {
          values[i][c] = row < old ? Run::fetch(head, c, lane % 4) : Run{};
        }
      }
    }
    cp_async_commit_group();
  }
  // Once the warp has read what is in shared memory.
  __device__ void place_values(__nv_bfloat16* shared, int lane) const {
    if constexpr (!is_bf16) {
#pragma unroll
      for (int i = 0; i < rows; ++i) {
#pragma unroll
        for (int c = 0; c < chunks; ++c) {
          *reinterpret_cast<uint4*>(value_chunk<Dim>(shared, lane / 4 + 8 * i, 4 * c + lane % 4)) =
              values[i][c].narrow();
        }
      }
      __syncwarp();
    }
  }
  // Whether the new position is among the warp's `step` positions from `first` on.
  __device__ static bool has_new(const DecodeWork& at, int first) {
    return at.own - first < DecodeShape<Dim>::step && at.end == at.own + 1;
  }
  __device__ void insert_key(const DecodeWork& at, const DecodeSmem<Dim>& smem, int first, int lane) {
    if (!has_new(at, first)) return;
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (lane / 4 + 8 * i != at.own - first) continue;
#pragma unroll
      for (int c = 0; c < chunks; ++c) keys[i][c] = Run::fetch(smem.new_key, c, lane % 4);
    }
  }
  __device__ static void insert_value(const DecodeWork& at, const DecodeSmem<Dim>& smem, int first,
                                      __nv_bfloat16* shared, int lane) {
    if (!has_new(at, first)) return;
    if (lane < Dim / 8) {
      *reinterpret_cast<uint4*>(value_chunk<Dim>(shared, at.own - first, lane)) =
          Run::fetch(smem.new_value, lane / 4, lane % 4).narrow();
    }
    __syncwarp();
  }
};

// A lane's elements of one head: 8 t to 8 t + 7 of every 32, in memory order.
template <int Dim>
struct HeadFragment {
  float x[Dim / 32][8];

  __device__ void load(const float* from, int t) {
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) {
#pragma unroll
      for (int i = 0; i < 8; i += 4) {
        const float4 four = __ldcg(reinterpret_cast<const float4*>(from + 32 * c + 8 * t + i));
        x[c][i] = four.x, x[c][i + 1] = four.y, x[c][i + 2] = four.z, x[c][i + 3] = four.w;
      }
    }
  }
  // RMS norm over the head, which four neighboring lanes hold. Returns 1 / rms.
  __device__ float normalize(const float* gain, float epsilon, int t) {
    float square = 0.0f;
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) {
#pragma unroll
      for (int i = 0; i < 8; ++i) square += x[c][i] * x[c][i];
    }
    square += __shfl_xor_sync(full_warp, square, 1);
    square += __shfl_xor_sync(full_warp, square, 2);
    const float inverse = rsqrtf(square / static_cast<float>(Dim) + epsilon);
#pragma unroll
    for (int c = 0; c < Dim / 32; ++c) {
#pragma unroll
      for (int i = 0; i < 8; ++i) x[c][i] *= inverse * gain[32 * c + 8 * t + i];
    }
    return inverse;
  }
  __device__ uint4 rounded(int c) const {
    return {pack_bf16x2(x[c][0], x[c][1]), pack_bf16x2(x[c][2], x[c][3]), pack_bf16x2(x[c][4], x[c][5]),
            pack_bf16x2(x[c][6], x[c][7])};
  }
};

// All dimensions rotate: a lane holds both elements of each of its pairs. The cosines, then the sines, of a
// position are the same for all heads and are in shared memory.
template <int Dim>
__device__ void rotate_all(HeadFragment<Dim>& head, const float* angles, int t) {
#pragma unroll
  for (int c = 0; c < Dim / 64; ++c) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int pair = 32 * c + 8 * t + i;
      const float a = head.x[c][i], b = head.x[c + Dim / 64][i];
      head.x[c][i] = a * angles[pair] - b * angles[Dim / 2 + pair];
      head.x[c + Dim / 64][i] = b * angles[pair] + a * angles[Dim / 2 + pair];
    }
  }
}

// Only some dimensions rotate: another lane may hold the partner of an element, so it is loaded again.
template <int Dim>
__device__ void rotate_some(HeadFragment<Dim>& head, const DecodeCall& call, const float* from, float inverse,
                            const float* angles) {
  const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
  for (int c = 0; c < Dim / 32; ++c) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int d = 32 * c + 8 * t + i;
      const bool low = d < call.half;
      const int other = low ? d + call.half : d - call.half, angle = low ? d : other;
      if (d < 2 * call.half) {
        const float partner = __ldcg(from + other) * inverse * (call.normalizes ? call.q_norm[other] : 1.0f);
        const float sine = angles[call.half + angle];
        head.x[c][i] = head.x[c][i] * angles[angle] + (low ? -partner : partner) * sine;
      }
      asm volatile("" ::: "memory");  // forces sequential evaluation: all at once would spill registers
    }
  }
}

// Normalizes and rotates the new key with one warp: store(dimension, value).
template <int Dim, class Store>
__device__ void rotate_head(const DecodeCall& call, const float* from, const float* gain,
                            const DecodeSmem<Dim>& smem, const Store& store) {
  constexpr int each = Dim / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  float inverse = 1.0f;
  if (call.normalizes) {
    float square = 0.0f;
#pragma unroll
    for (int i = 0; i < each; ++i) square += __ldcg(from + lane + 32 * i) * __ldcg(from + lane + 32 * i);
    inverse = rsqrtf(warp_sum(square) / static_cast<float>(Dim) + call.epsilon);
  }
  const auto value = [&](int i) { return __ldcg(from + i) * inverse * (call.normalizes ? gain[i] : 1.0f); };
  for (int i = lane; i < call.half; i += 32) {
    const float a = value(i), b = value(call.half + i), c = smem.angles[i], s = smem.angles[call.half + i];
    store(i, a * c - b * s);
    store(call.half + i, b * c + a * s);
  }
  for (int i = 2 * call.half + lane; i < Dim; i += 32) store(i, value(i));
}

// The same head in shared memory, with its own scale first.
__device__ inline Cached in_shared(const Cached& cache, std::byte* head, int kv_head) {
  return {.data = head,
          .type = cache.type,
          .scales = cache.scales == nullptr ? nullptr : cache.scales + kv_head,
          .row_bytes = 0,
          .head_bytes = 0};
}

// The new key and value, for the warp that has the new position.
template <int Dim, DType Type>
__device__ void read_new(const DecodeCall& call, const DecodeWork& at, DecodeSmem<Dim>& smem) {
  constexpr int each = Dim / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* row = call.qkv + std::int64_t{at.row} * (call.heads + 2 * call.kv_heads) * Dim;
  const std::int32_t slot = call.slots[at.row];
  const float* key = row + (call.heads + at.kv_head) * Dim;
  float value[each];
#pragma unroll
  for (int i = 0; i < each; ++i) {
    value[i] = __ldcg(row + (call.heads + call.kv_heads + at.kv_head) * Dim + lane + 32 * i);
  }
  if constexpr (Type == DType::bf16) {
    auto* cached_key = reinterpret_cast<__nv_bfloat16*>(call.keys.head(slot, at.kv_head));
    auto* cached_value = reinterpret_cast<__nv_bfloat16*>(call.values.head(slot, at.kv_head));
    rotate_head<Dim>(call, key, call.k_norm, smem, [&](int i, float x) {
      const __nv_bfloat16 rounded = __float2bfloat16_rn(x);
      reinterpret_cast<__nv_bfloat16*>(smem.new_key)[i] = rounded;
      if (at.chunk == 0) cached_key[i] = rounded;
    });
#pragma unroll
    for (int i = 0; i < each; ++i) {
      const __nv_bfloat16 rounded = __float2bfloat16_rn(value[i]);
      reinterpret_cast<__nv_bfloat16*>(smem.new_value)[lane + 32 * i] = rounded;
      if (at.chunk == 0) cached_value[lane + 32 * i] = rounded;
    }
  } else {
    float* room = smem.per_warp[threadIdx.x / 32].results;  // values are still in registers
    rotate_head<Dim>(call, key, call.k_norm, smem, [&](int i, float x) { room[i] = x; });
    __syncwarp();
    const auto put = [&](const Cached& cache, std::byte* own, const float* from) {
      const auto get = [&](int i) { return from[i]; };
      store_head(in_shared(cache, own, at.kv_head), 0, 0, Dim, lane, get);
      if (at.chunk == 0) store_head(cache, slot, at.kv_head, Dim, lane, get);
    };
    put(call.keys, smem.new_key, room);
    __syncwarp();
#pragma unroll
    for (int i = 0; i < each; ++i) room[lane + 32 * i] = value[i];
    put(call.values, smem.new_value, room);
  }
  __syncwarp();
}

// A row of the table has 2 * half floats, which may not be a multiple of 16 bytes.
template <int Dim>
__device__ void fetch_angles(const DecodeCall& call, const DecodeWork& at, DecodeSmem<Dim>& smem) {
  const int thread = static_cast<int>(threadIdx.x);
  const float* from = call.table + std::int64_t{at.own} * 2 * call.half;
  if (2 * call.half == Dim) {
    if (thread < Dim / 4) cp_async(smem.angles + 4 * thread, from + 4 * thread, true);
  } else if (thread < 2 * call.half) {
    smem.angles[thread] = from[thread];
  }
  cp_async_commit_group();
}

// The queries of head g as an mma operand, zeros if there is no such head. The warp that has the new position
// also processes the new key and value.
template <int Dim, DType Type>
__device__ void read_queries(uint4 (&queries)[Dim / 32], const DecodeCall& call, const DecodeWork& at,
                             DecodeSmem<Dim>& smem) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4;
  const float* row = call.qkv + std::int64_t{at.row} * (call.heads + 2 * call.kv_heads) * Dim;
  const float* from = row + (at.first_head + min(g, at.heads - 1)) * Dim;
  HeadFragment<Dim> head;
  head.load(from, t);
  cp_async_wait_group<1>();  // angles; values are still in flight
  __syncthreads();
  const bool has_new = at.end == at.own + 1;
  if (has_new && (at.own - at.begin) / DecodeShape<Dim>::step % warps == warp)
    read_new<Dim, Type>(call, at, smem);
  const float inverse = call.normalizes ? head.normalize(call.q_norm, call.epsilon, t) : 1.0f;
  if (2 * call.half == Dim) {
    rotate_all<Dim>(head, smem.angles, t);
  } else {
    rotate_some<Dim>(head, call, from, inverse, smem.angles);
  }
#pragma unroll
  for (int c = 0; c < Dim / 32; ++c) queries[c] = g < at.heads ? head.rounded(c) : make_uint4(0, 0, 0, 0);
}

__device__ inline void add_weighted(float4& sum, float weight, const float4& value) {
  sum.x += weight * value.x, sum.y += weight * value.y;
  sum.z += weight * value.z, sum.w += weight * value.w;
}

// Four accumulated values of one head with its running maximum (times log2 e) and sum of weights.
struct Reduced {
  float4 values = {};
  float top = -INFINITY, sum = 0.0f;

  __device__ void write(const DecodeCall& call, std::int64_t element, float sink) const {
    const float largest = fmaxf(top, sink), share = exp2_of(top - largest);
    const float factor = share / (sum * share + exp2_of(sink - largest));
    const float4 out = {values.x * factor, values.y * factor, values.z * factor, values.w * factor};
    if (call.out.wide) {
      *reinterpret_cast<float4*>(reinterpret_cast<float*>(call.out.data) + element) = out;
    } else {
      *reinterpret_cast<uint2*>(reinterpret_cast<__nv_bfloat16*>(call.out.data) + element) = {
          pack_bf16x2(out.x, out.y), pack_bf16x2(out.z, out.w)};
    }
  }
};

// Part `index` = 2 * head + half of the dimensions. A thread holds four dimensions of a part, from d on.
struct PartIndex {
  int index, d;

  template <int Dim>
  __device__ std::int64_t element(const DecodeCall& call, const DecodeWork& at) const {
    return (std::int64_t{at.row} * call.heads + at.first_head + index / 2) * Dim + index % 2 * (Dim / 2) + d;
  }
};

// The parts that a thread reduces over the block's warps: round 0, and round 1 if head_dim is 128.
template <int Dim>
__device__ PartIndex own_part(int thread, int round) {
  const int head = thread / 16, d = thread % 16 * 4 + round * 64;
  return {2 * head + d / (Dim / 2), d % (Dim / 2)};
}

template <int Dim>
__device__ Reduced reduce_warps(DecodeSmem<Dim>& smem, const PartIndex& part) {
  const int head = part.index / 2, d = part.index % 2 * (Dim / 2) + part.d;
  Reduced all;
#pragma unroll
  for (int w = 0; w < warps; ++w) all.top = fmaxf(all.top, smem.tops[w][head].x);
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    const float2 top = smem.tops[w][head];
    const float share = exp2_of(top.x - all.top);  // zero if the warp had no positions
    all.sum += share * top.y;
    add_weighted(all.values, share,
                 *reinterpret_cast<const float4*>(result_at<Dim>(smem.per_warp[w].results, head, d)));
  }
  return all;
}

// Reduces the parts of `count` blocks, `stride` apart. Parts in global memory were written by other SMs, so
// loads must bypass L1.
template <int Dim, bool in_global>
__device__ Reduced reduce_parts(const Partial<Dim>* found, int stride, int count, int d) {
  const auto four = [&](const float* at) {
    const auto* from = reinterpret_cast<const float4*>(at);
    if constexpr (in_global) return __ldcg(from);
    return *from;
  };
  Reduced all;
#pragma unroll 8
  for (int i = 0; i < count; ++i) all.top = fmaxf(all.top, four(&found[i * stride].top).x);
#pragma unroll 8
  for (int i = 0; i < count; ++i) {
    const Partial<Dim>& part = found[i * stride];
    const float4 top = four(&part.top);
    const float share = exp2_of(top.x - all.top);
    all.sum += share * top.y;
    add_weighted(all.values, share, four(part.values + d));
  }
  return all;
}

// The part that a thread writes after the cluster's reduction: index % splits is its block.
template <int Dim>
__device__ PartIndex cluster_part(const DecodeWork& at, int thread) {
  constexpr int each = Dim / 8;
  return {thread / each * at.splits + at.split(), thread % each * 4};
}

// The sink of the head that a thread writes, times log2 e.
template <int Dim>
__device__ float sink_of(const DecodeCall& call, const DecodeWork& at, int thread) {
  const int head = at.splits * at.clusters == 1 ? thread / 16 : cluster_part<Dim>(at, thread).index / 2;
  return call.sinks == nullptr || head >= at.heads ? -INFINITY : call.sinks[at.first_head + head] * log2_e;
}

template <int Dim>
__device__ void write_single_block(const DecodeCall& call, const DecodeWork& at, DecodeSmem<Dim>& smem,
                                   float sink) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread / 16 >= at.heads) return;
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartIndex part = own_part<Dim>(thread, round);
    reduce_warps<Dim>(smem, part).write(call, part.element<Dim>(call, at), sink);
  }
}

// Stores a part in global memory for the block that reduces the group.
template <int Dim>
__device__ void store_partial(Partial<Dim>& to, const Reduced& mine, int d) {
  __stcg(reinterpret_cast<float4*>(to.values + d), mine.values);
  if (d == 0) __stcg(reinterpret_cast<float4*>(&to.top), make_float4(mine.top, mine.sum, 0.0f, 0.0f));
}

// True for the last of `count` blocks to arrive, which sees what all of them stored.
template <int Dim>
__device__ bool is_last_block(DecodeSmem<Dim>& smem, std::uint32_t* ticket, int count) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto others = static_cast<std::uint32_t>(count - 1);
    smem.last = atomicInc(ticket, others) == others;  // wraps to zero for the next launch
    __threadfence();
  }
  __syncthreads();
  return smem.last;
}

// Every block sends each part to the block that writes it, which then reduces what it received. If a group
// has several clusters, the last of their blocks with the same parts reduces once more in global memory.
template <int Dim>
__device__ void write_in_cluster(const DecodeCall& call, const DecodeWork& at, DecodeSmem<Dim>& smem,
                                 float sink) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartIndex part = own_part<Dim>(thread, round);
    if (part.index >= 2 * at.heads) continue;
    const Reduced mine = reduce_warps<Dim>(smem, part);
    const Partial<Dim>& to = smem.received[(part.index & -at.splits) + at.split()];  // a power of two
    const int rank = part.index & (at.splits - 1);
    store_remote(remote_address(to.values + part.d, rank), mine.values);
    if (part.d == 0) store_remote(remote_address(&to.top, rank), {mine.top, mine.sum, 0.0f, 0.0f});
  }
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  const PartIndex part = cluster_part<Dim>(at, thread);
  const bool has_part = part.index < 2 * at.heads;
  Reduced all;
  if (has_part)
    all = reduce_parts<Dim, false>(smem.received + (part.index & -at.splits), 1, at.splits, part.d);
  if (at.clusters > 1) {
    const int blocks = static_cast<int>(gridDim.x), group = static_cast<int>(blockIdx.x);
    auto* left = reinterpret_cast<Partial<Dim>*>(call.partial) + std::int64_t{group} * parts + part.index;
    if (has_part) store_partial<Dim>(left[at.cluster() * blocks * parts], all, part.d);
    if (!is_last_block<Dim>(smem, call.tickets + group * max_cluster + at.split(), at.clusters)) return;
    if (has_part) all = reduce_parts<Dim, true>(left, blocks * parts, at.clusters, part.d);
  }
  if (has_part) all.write(call, part.element<Dim>(call, at), sink);
}

// Without clusters, the last block to finish reduces all parts in global memory.
template <int Dim>
__device__ void write_from_last_block(const DecodeCall& call, const DecodeWork& at, DecodeSmem<Dim>& smem) {
  const int thread = static_cast<int>(threadIdx.x);
  auto* all = reinterpret_cast<Partial<Dim>*>(call.partial) + std::int64_t{blockIdx.x} * call.splits * parts;
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartIndex part = own_part<Dim>(thread, round);
    if (part.index >= 2 * at.heads) continue;
    store_partial<Dim>(all[at.split() * parts + part.index], reduce_warps<Dim>(smem, part), part.d);
  }
  if (!is_last_block<Dim>(smem, call.tickets + blockIdx.x, at.splits)) return;
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartIndex part = own_part<Dim>(thread, round);
    if (part.index >= 2 * at.heads) continue;
    const int head = at.first_head + part.index / 2;
    const float sink = call.sinks == nullptr ? -INFINITY : call.sinks[head] * log2_e;
    reduce_parts<Dim, true>(all + part.index, parts, at.splits, part.d)
        .write(call, part.element<Dim>(call, at), sink);
  }
}

}  // namespace inferno::cuda::decode
