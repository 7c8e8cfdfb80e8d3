// What attention_decode.cu works on: its arguments, a block's share of them, its shared memory, and the way
// of keys and values there.
#pragma once

#include <cuda_bf16.h>

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
  __nv_bfloat16 *keys, *values;
  const std::int32_t *slots, *positions, *block_table;
  int table_cols, block_shift, window;
  int heads, kv_heads, half, chunks;  // half: of the dimensions that rotate
  int splits, clusters;               // blocks of a cluster, a power of two; clusters for a group of heads
  float scale, epsilon;
  bool normalizes;
  float* partial;
  std::uint32_t* tickets;
};

// Every warp takes `step` positions at a time: its keys are 32 registers of each lane, its values 4 KB.
template <int Dim>
struct DecodeShape {
  static constexpr int tiles = 128 / Dim;  // of 16 positions
  static constexpr int step = 16 * tiles, pass = warps * step;
};

// Stretches: `splits` for each of `clusters` that have something to do.
struct DecodePlace {
  int row, kv_head, first_head, heads, chunk, splits, clusters, own, begin, end;

  __device__ static int split() { return static_cast<int>(blockIdx.y); }
  __device__ static int cluster() { return static_cast<int>(blockIdx.z); }
  __device__ bool idle() const { return split() >= splits || cluster() >= clusters; }
};

// What a block found for half the dimensions of a head: sums of values under weights of 2^(score - top).
template <int Dim>
struct Part {
  float values[Dim / 2];
  float top, sum, unused[2];
};
constexpr int parts = 2 * max_heads;

template <int Dim>
struct DecodeRoom {
  union OfWarp {
    __nv_bfloat16 values[DecodeShape<Dim>::step * Dim];
    float results[max_heads * Dim];
  };
  OfWarp of_warp[warps];
  Part<Dim> received[parts];      // from the blocks of the cluster
  float2 tops[warps][max_heads];  // the largest score and the sum of weights
  __nv_bfloat16 new_key[Dim], new_value[Dim];
  float angles[Dim];
  DecodePlace place;  // for the end: registers are short in between
  bool last;
};

template <int Dim>
__device__ DecodePlace place_of(const DecodeCall& call) {
  DecodePlace at;
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
  // A power of two, so that heads are dealt evenly. A second cluster costs a way through global memory, which
  // is worth four to eight passes. Nobody's stretch is empty: positions are more than stretches squared.
  at.splits = min(call.splits, 1 << (32 - __clz(passes - 1)));
  const bool is_long = passes > call.splits * (call.clusters > 2 ? 4 : 8);
  at.clusters = is_long ? min(call.clusters, passes / (2 * call.splits)) : 1;
  const int stretches = at.splits * at.clusters, each = (count + stretches - 1) / stretches;
  at.begin = first + (at.cluster() * at.splits + at.split()) * each;
  at.end = min(at.own + 1, at.begin + each);
  return at;
}

// Where a chunk of eight elements of a row of values lies, so that no bank is met twice by the eight rows
// that a transposed load reads.
template <int Dim>
__device__ __nv_bfloat16* value_chunk(__nv_bfloat16* values, int row, int chunk) {
  return values + row * Dim + (((chunk & 7) ^ (row & 7)) + (chunk & 8)) * 8;
}

// Likewise dimension d (a multiple of four when four are read at once) of a head's results.
template <int Dim>
__device__ float* result_at(float* results, int head, int d) {
  return results + head * Dim + (d ^ (head / 2 % 4 * 8));
}

// A warp's step of keys in registers as the tensor cores want them (lane (g, t): positions g, g + 8, ...),
// and its values, on their way to shared memory. Positions that are not there, or are new, give zeros.
template <int Dim>
struct DecodeStep {
  static constexpr int rows = 2 * DecodeShape<Dim>::tiles, chunks = Dim / 32;
  uint4 keys[rows][chunks];
  std::int32_t at_row[rows];
  int old;  // how many of the warp's positions, from its first on, are in the cache

  __device__ static std::int32_t row_of(const DecodeCall& call, const DecodePlace& at, int position) {
    const std::int32_t* table = call.block_table + std::int64_t{at.row} * call.table_cols;
    return (table[position >> call.block_shift] << call.block_shift) +
           (position & ((1 << call.block_shift) - 1));
  }
  __device__ static const uint4* place_in(const __nv_bfloat16* cache, const DecodeCall& call, int kv_head,
                                          std::int32_t row) {
    return reinterpret_cast<const uint4*>(cache + kv_head * Dim + std::int64_t{row} * (call.kv_heads * Dim));
  }

  __device__ void find(const DecodeCall& call, const DecodePlace& at, int first, int lane) {
    old = min(at.end, at.own) - first;
#pragma unroll
    for (int i = 0; i < rows; ++i) at_row[i] = row_of(call, at, min(first + lane / 4 + 8 * i, at.own));
  }
  __device__ void fetch_keys(const DecodeCall& call, const DecodePlace& at, int lane) {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const uint4* from = place_in(call.keys, call, at.kv_head, at_row[i]) + lane % 4;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        keys[i][c] = lane / 4 + 8 * i < old ? from[4 * c] : make_uint4(0, 0, 0, 0);
      }
    }
  }
  __device__ void fetch_values(const DecodeCall& call, const DecodePlace& at, __nv_bfloat16* values,
                               int lane) const {
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      const int row = lane / 4 + 8 * i;
      const uint4* from = place_in(call.values, call, at.kv_head, at_row[i]) + lane % 4;
#pragma unroll
      for (int c = 0; c < chunks; ++c) {
        copy_later(value_chunk<Dim>(values, row, 4 * c + lane % 4), from + 4 * c, row < old);
      }
    }
    close_copies();
  }
  // The new position, if it is one of the warp's `step` from `first` on.
  __device__ static bool has_new(const DecodePlace& at, int first) {
    return at.own - first < DecodeShape<Dim>::step && at.end == at.own + 1;
  }
  __device__ void insert_key(const DecodePlace& at, const DecodeRoom<Dim>& room, int first, int lane) {
    if (!has_new(at, first)) return;
    const auto* key = reinterpret_cast<const uint4*>(room.new_key);
#pragma unroll
    for (int i = 0; i < rows; ++i) {
      if (lane / 4 + 8 * i != at.own - first) continue;
#pragma unroll
      for (int c = 0; c < chunks; ++c) keys[i][c] = key[4 * c + lane % 4];
    }
  }
  __device__ static void insert_value(const DecodePlace& at, const DecodeRoom<Dim>& room, int first,
                                      __nv_bfloat16* values, int lane) {
    if (!has_new(at, first)) return;
    if (lane < Dim / 8) {
      *reinterpret_cast<uint4*>(value_chunk<Dim>(values, at.own - first, lane)) =
          reinterpret_cast<const uint4*>(room.new_value)[lane];
    }
    __syncwarp();
  }
};

// A lane's elements of one head: 8 t to 8 t + 7 of every 32. They lie in registers as they are in memory.
template <int Dim>
struct HeadPiece {
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
  // Divided by the root of the mean square over the head, which four neighbouring lanes hold. Returns what
  // it multiplied by, gains apart.
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
    return {packed(x[c][0], x[c][1]), packed(x[c][2], x[c][3]), packed(x[c][4], x[c][5]),
            packed(x[c][6], x[c][7])};
  }
};

// Where all dimensions rotate, a lane has both elements of each of its pairs. Cosines, then sines of a
// position are the same for all heads and lie in shared memory.
template <int Dim>
__device__ void rotate_all(HeadPiece<Dim>& head, const float* angles, int t) {
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

// Where only some dimensions rotate, another lane may have an element's partner: it is read once more.
template <int Dim>
__device__ void rotate_some(HeadPiece<Dim>& head, const DecodeCall& call, const float* from, float inverse,
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
      asm volatile(
          "" ::
              : "memory");  // one after another: all at once would need more registers than there are
    }
  }
}

// The new key, rotated and normalized by a warp together: to shared memory and, if `cached` is given, to the
// cache.
template <int Dim>
__device__ void rotate_head(const DecodeCall& call, const float* from, const float* gain,
                            DecodeRoom<Dim>& room, __nv_bfloat16* cached) {
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
  const auto store = [&](int i, float x) {
    const __nv_bfloat16 rounded = __float2bfloat16_rn(x);
    room.new_key[i] = rounded;
    if (cached != nullptr) cached[i] = rounded;
  };
  for (int i = lane; i < call.half; i += 32) {
    const float a = value(i), b = value(call.half + i), c = room.angles[i], s = room.angles[call.half + i];
    store(i, a * c - b * s);
    store(call.half + i, b * c + a * s);
  }
  for (int i = 2 * call.half + lane; i < Dim; i += 32) store(i, value(i));
}

// The new key and value, for the warp whose position is the new one.
template <int Dim>
__device__ void read_new(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room) {
  constexpr int each = Dim / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const float* row = call.qkv + std::int64_t{at.row} * (call.heads + 2 * call.kv_heads) * Dim;
  const std::int64_t slot = (std::int64_t{call.slots[at.row]} * call.kv_heads + at.kv_head) * Dim;
  float value[each];
#pragma unroll
  for (int i = 0; i < each; ++i) {
    value[i] = __ldcg(row + (call.heads + call.kv_heads + at.kv_head) * Dim + lane + 32 * i);
  }
  rotate_head<Dim>(call, row + (call.heads + at.kv_head) * Dim, call.k_norm, room,
                   at.chunk == 0 ? call.keys + slot : nullptr);
#pragma unroll
  for (int i = 0; i < each; ++i) {
    const __nv_bfloat16 rounded = __float2bfloat16_rn(value[i]);
    room.new_value[lane + 32 * i] = rounded;
    if (at.chunk == 0) call.values[slot + lane + 32 * i] = rounded;
  }
  __syncwarp();
}

// A row of the table has 2 * half floats: not always a multiple of 16 bytes.
template <int Dim>
__device__ void fetch_angles(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room) {
  const int thread = static_cast<int>(threadIdx.x);
  const float* from = call.table + std::int64_t{at.own} * 2 * call.half;
  if (2 * call.half == Dim) {
    if (thread < Dim / 4) copy_later(room.angles + 4 * thread, from + 4 * thread, true);
  } else if (thread < 2 * call.half) {
    room.angles[thread] = from[thread];
  }
  close_copies();
}

// The queries of head g as the tensor cores want them, zeros where there is no such head. The new key and
// value are read meanwhile, by the warp that has their position.
template <int Dim>
__device__ void read_queries(uint4 (&queries)[Dim / 32], const DecodeCall& call, const DecodePlace& at,
                             DecodeRoom<Dim>& room) {
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int g = lane / 4, t = lane % 4;
  const float* row = call.qkv + std::int64_t{at.row} * (call.heads + 2 * call.kv_heads) * Dim;
  const float* from = row + (at.first_head + min(g, at.heads - 1)) * Dim;
  HeadPiece<Dim> head;
  head.load(from, t);
  wait_for_copies<1>();  // angles; values are still on their way
  __syncthreads();
  const bool has_new = at.end == at.own + 1;
  if (has_new && (at.own - at.begin) / DecodeShape<Dim>::step % warps == warp) read_new<Dim>(call, at, room);
  const float inverse = call.normalizes ? head.normalize(call.q_norm, call.epsilon, t) : 1.0f;
  if (2 * call.half == Dim) {
    rotate_all<Dim>(head, room.angles, t);
  } else {
    rotate_some<Dim>(head, call, from, inverse, room.angles);
  }
#pragma unroll
  for (int c = 0; c < Dim / 32; ++c) queries[c] = g < at.heads ? head.rounded(c) : make_uint4(0, 0, 0, 0);
}

__device__ inline void add_weighted(float4& sum, float weight, const float4& value) {
  sum.x += weight * value.x, sum.y += weight * value.y;
  sum.z += weight * value.z, sum.w += weight * value.w;
}

// Four sums of one head beside its largest score (times log2 e) and its sum of weights.
struct Joined {
  float4 values = {};
  float top = -INFINITY, sum = 0.0f;

  __device__ void write(const DecodeCall& call, std::int64_t element, float sink) const {
    const float most = fmaxf(top, sink), share = exp2_of(top - most);
    const float factor = share / (sum * share + exp2_of(sink - most));
    const float4 out = {values.x * factor, values.y * factor, values.z * factor, values.w * factor};
    if (call.out.wide) {
      *reinterpret_cast<float4*>(reinterpret_cast<float*>(call.out.data) + element) = out;
    } else {
      *reinterpret_cast<uint2*>(reinterpret_cast<__nv_bfloat16*>(call.out.data) + element) = {
          packed(out.x, out.y), packed(out.z, out.w)};
    }
  }
};

// Part `index` = 2 * head + half of the dimensions. A thread has four of a part's dimensions, from d on.
struct PartPlace {
  int index, d;

  template <int Dim>
  __device__ std::int64_t element(const DecodeCall& call, const DecodePlace& at) const {
    return (std::int64_t{at.row} * call.heads + at.first_head + index / 2) * Dim + index % 2 * (Dim / 2) + d;
  }
};

// The parts that a thread joins from its own warps' results: round 0, and round 1 where heads have 128.
template <int Dim>
__device__ PartPlace own_part(int thread, int round) {
  const int head = thread / 16, d = thread % 16 * 4 + round * 64;
  return {2 * head + d / (Dim / 2), d % (Dim / 2)};
}

template <int Dim>
__device__ Joined join_warps(DecodeRoom<Dim>& room, const PartPlace& part) {
  const int head = part.index / 2, d = part.index % 2 * (Dim / 2) + part.d;
  Joined all;
#pragma unroll
  for (int w = 0; w < warps; ++w) all.top = fmaxf(all.top, room.tops[w][head].x);
#pragma unroll
  for (int w = 0; w < warps; ++w) {
    const float2 top = room.tops[w][head];
    const float share = exp2_of(top.x - all.top);  // zero for a warp that had no positions
    all.sum += share * top.y;
    add_weighted(all.values, share,
                 *reinterpret_cast<const float4*>(result_at<Dim>(room.of_warp[w].results, head, d)));
  }
  return all;
}

// The same of `count` blocks' parts, `stride` apart. Those in global memory were written by other
// multiprocessors: L1 must not answer for them.
template <int Dim, bool in_global>
__device__ Joined join_parts(const Part<Dim>* found, int stride, int count, int d) {
  const auto four = [&](const float* at) {
    const auto* from = reinterpret_cast<const float4*>(at);
    if constexpr (in_global) return __ldcg(from);
    return *from;
  };
  Joined all;
#pragma unroll 8
  for (int i = 0; i < count; ++i) all.top = fmaxf(all.top, four(&found[i * stride].top).x);
#pragma unroll 8
  for (int i = 0; i < count; ++i) {
    const Part<Dim>& part = found[i * stride];
    const float4 top = four(&part.top);
    const float share = exp2_of(top.x - all.top);
    all.sum += share * top.y;
    add_weighted(all.values, share, four(part.values + d));
  }
  return all;
}

// Which part a thread writes at last where blocks of a cluster join: index % splits is its block.
template <int Dim>
__device__ PartPlace cluster_part(const DecodePlace& at, int thread) {
  constexpr int each = Dim / 8;
  return {thread / each * at.splits + at.split(), thread % each * 4};
}

// The sink of the head that a thread writes at last, times log2 e.
template <int Dim>
__device__ float sink_of(const DecodeCall& call, const DecodePlace& at, int thread) {
  const int head = at.splits * at.clusters == 1 ? thread / 16 : cluster_part<Dim>(at, thread).index / 2;
  return call.sinks == nullptr || head >= at.heads ? -INFINITY : call.sinks[at.first_head + head] * log2_e;
}

template <int Dim>
__device__ void write_alone(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room,
                            float sink) {
  const int thread = static_cast<int>(threadIdx.x);
  if (thread / 16 >= at.heads) return;
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartPlace part = own_part<Dim>(thread, round);
    join_warps<Dim>(room, part).write(call, part.element<Dim>(call, at), sink);
  }
}

// Leaves a part in global memory, where others of the same group will find it.
template <int Dim>
__device__ void leave_part(Part<Dim>& to, const Joined& mine, int d) {
  __stcg(reinterpret_cast<float4*>(to.values + d), mine.values);
  if (d == 0) __stcg(reinterpret_cast<float4*>(&to.top), make_float4(mine.top, mine.sum, 0.0f, 0.0f));
}

// True for the last of `count` blocks to come here, which then sees what all of them have left.
template <int Dim>
__device__ bool comes_last(DecodeRoom<Dim>& room, std::uint32_t* ticket, int count) {
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto others = static_cast<std::uint32_t>(count - 1);
    room.last = atomicInc(ticket, others) == others;  // wraps to zero for the next launch
    __threadfence();
  }
  __syncthreads();
  return room.last;
}

// Every block sends each part to the block that writes it; then each joins what it got. Where a group has
// several clusters, the last of their blocks with the same parts joins them once more.
template <int Dim>
__device__ void write_in_cluster(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room,
                                 float sink) {
  const int thread = static_cast<int>(threadIdx.x);
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartPlace part = own_part<Dim>(thread, round);
    if (part.index >= 2 * at.heads) continue;
    const Joined mine = join_warps<Dim>(room, part);
    const Part<Dim>& to = room.received[(part.index & -at.splits) + at.split()];  // a power of two
    const int rank = part.index & (at.splits - 1);
    store_there(in_block(to.values + part.d, rank), mine.values);
    if (part.d == 0) store_there(in_block(&to.top, rank), {mine.top, mine.sum, 0.0f, 0.0f});
  }
  __syncwarp();
  cluster_arrive();
  cluster_wait();
  const PartPlace part = cluster_part<Dim>(at, thread);
  const bool has_part = part.index < 2 * at.heads;
  Joined all;
  if (has_part) all = join_parts<Dim, false>(room.received + (part.index & -at.splits), 1, at.splits, part.d);
  if (at.clusters > 1) {
    const int blocks = static_cast<int>(gridDim.x), group = static_cast<int>(blockIdx.x);
    auto* left = reinterpret_cast<Part<Dim>*>(call.partial) + std::int64_t{group} * parts + part.index;
    if (has_part) leave_part<Dim>(left[at.cluster() * blocks * parts], all, part.d);
    if (!comes_last<Dim>(room, call.tickets + group * max_cluster + at.split(), at.clusters)) return;
    if (has_part) all = join_parts<Dim, true>(left, blocks * parts, at.clusters, part.d);
  }
  if (has_part) all.write(call, part.element<Dim>(call, at), sink);
}

// Without clusters: the last block to finish joins what all have left in global memory.
template <int Dim>
__device__ void write_if_last(const DecodeCall& call, const DecodePlace& at, DecodeRoom<Dim>& room) {
  const int thread = static_cast<int>(threadIdx.x);
  auto* all = reinterpret_cast<Part<Dim>*>(call.partial) + std::int64_t{blockIdx.x} * call.splits * parts;
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartPlace part = own_part<Dim>(thread, round);
    if (part.index >= 2 * at.heads) continue;
    leave_part<Dim>(all[at.split() * parts + part.index], join_warps<Dim>(room, part), part.d);
  }
  if (!comes_last<Dim>(room, call.tickets + blockIdx.x, at.splits)) return;
#pragma unroll
  for (int round = 0; round < Dim / 64; ++round) {
    const PartPlace part = own_part<Dim>(thread, round);
    if (part.index >= 2 * at.heads) continue;
    const int head = at.first_head + part.index / 2;
    const float sink = call.sinks == nullptr ? -INFINITY : call.sinks[head] * log2_e;
    join_parts<Dim, true>(all + part.index, parts, at.splits, part.d)
        .write(call, part.element<Dim>(call, at), sink);
  }
}

}  // namespace inferno::cuda::decode
