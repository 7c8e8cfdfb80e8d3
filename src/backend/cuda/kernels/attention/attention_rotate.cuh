// The new token's queries, key and value, normalized and rotated: queries in the registers where the tensor
// cores want them, the key and the value in shared memory and in the cache.
#pragma once

#include "backend/cuda/kernels/attention/attention_decode.cuh"

namespace inferno::cuda::decode {

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

}  // namespace inferno::cuda::decode
