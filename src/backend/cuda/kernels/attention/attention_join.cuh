// How the results of attention_decode.cu's warps, then those of its blocks, become one. Blocks meet in each
// other's shared memory where they form a cluster, otherwise in global memory. Always in the same order, so
// that the same bits come out every time.
#pragma once

#include "backend/cuda/device/cluster.cuh"
#include "backend/cuda/device/exp2.cuh"
#include "backend/cuda/kernels/attention/attention_decode.cuh"

namespace inferno::cuda::decode {

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
