// The prologue of a stream kernel: input vectors in shared memory in the form that the codec needs, and the
// norm that the predecessor left incomplete (DelayedNorm).
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/device/coded.cuh"
#include "backend/cuda/device/warp.cuh"
#include "backend/cuda/kernels/linear/stream_call.cuh"

namespace inferno::cuda {

// 1 / rms of the input. One warp per block reads the partial sums of squares: if all did, the few cache lines
// that hold them would be requested thousands of times at once.
struct PartialSquares {
  static constexpr int at_once = 5;
  float values[at_once] = {};

  __device__ void load(const DelayedNorm& norm, int lane) {
    if (norm.squares == nullptr) return;
#pragma unroll
    for (int i = 0; i < at_once; ++i) {
      if (lane + 32 * i < norm.parts) values[i] = __ldcg(norm.squares + lane + 32 * i);
    }
  }
  __device__ float inverse_rms(const DelayedNorm& norm, int lane) const {
    if (norm.squares == nullptr) return 1.0f;
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < at_once; ++i) sum += values[i];
    for (int part = lane + 32 * at_once; part < norm.parts; part += 32) sum += __ldcg(norm.squares + part);
    return rsqrtf(warp_sum(sum) * norm.per_width + norm.epsilon);
  }
};

__device__ inline void load_octet(float (&out)[8], const StreamCall& call, int chunk) {
  if (call.column_order != nullptr) {
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int column = __ldg(call.column_order + 8 * chunk + i);
      out[i] = call.in_is_wide ? __ldcg(reinterpret_cast<const float*>(call.in) + column)
                               : low_of(__ldcg(reinterpret_cast<const unsigned short*>(call.in) + column));
    }
    return;
  }
  if (call.in_is_wide) {
    const auto* from = reinterpret_cast<const float4*>(call.in) + 2 * chunk;
    const float4 a = __ldcg(from), b = __ldcg(from + 1);
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
    out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
    return;
  }
  const uint4 words = __ldcg(reinterpret_cast<const uint4*>(call.in) + chunk);
  const std::uint32_t pairs[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    out[2 * i] = low_of(pairs[i]);
    out[2 * i + 1] = high_of(pairs[i]);
  }
}

enum class InputForm {
  bf16,
  f16,               // with a factor per 32 columns, as are bytes
  f16_128,           // with a factor per 128 columns
  f16_128_fp8,       // the same; of four columns 2, 0, 3 and 1, the order of E4M3 codes in tiles
  bytes,             // int16, whose high and low bytes are multiplied separately
  bytes_and_sums,    // with the sum of every 32
  nibbles_and_sums,  // of eight columns 0, 4, 1, 5, 2, 6, 3 and 7, the order of four-bit codes in tiles
};

// Eight elements of a block of 32 or 128, whose other elements neighboring lanes hold, as f16 with a factor.
template <InputForm form>
__device__ uint4 scaled_octet(const float (&x)[8], const StreamSmem& smem, int chunk, bool exists) {
  constexpr int lanes = form == InputForm::f16 ? 4 : 16;
  float top = 0.0f;
#pragma unroll
  for (int i = 0; i < 8; ++i) top = fmaxf(top, fabsf(x[i]));
#pragma unroll
  for (int other = 1; other < lanes; other *= 2) top = fmaxf(top, __shfl_xor_sync(full_warp, top, other));
  const float2 scale = f16_scale(top);
  if (exists && chunk % lanes == 0) smem.factors[chunk / 4] = scale.y;
  const auto pair = [&](int a, int b) { return pack_f16x2(x[a] * scale.x, x[b] * scale.x); };
  if constexpr (form == InputForm::f16_128_fp8) {
    return make_uint4(pair(2, 0), pair(3, 1), pair(6, 4), pair(7, 5));
  } else {
    return make_uint4(pair(0, 1), pair(2, 3), pair(4, 5), pair(6, 7));
  }
}

// The same as int16, whose high and low bytes are multiplied separately. A block's 32 high bytes come before
// its 32 low bytes.
template <InputForm form>
__device__ void store_int16(const float (&x)[8], const StreamSmem& smem, int chunk, bool exists) {
  constexpr float max_value = 32512.0f;
  constexpr bool has_sums = form != InputForm::bytes;
  float top = 0.0f, nan_probe = 0.0f;  // nan_probe: NaN if any element is not finite
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    top = fmaxf(top, fabsf(x[i]));
    nan_probe = fmaf(x[i], 0.0f, nan_probe);
  }
  top = fmaxf(top, __shfl_xor_sync(full_warp, top, 1));
  top = fmaxf(top, __shfl_xor_sync(full_warp, top, 2));
  nan_probe += __shfl_xor_sync(full_warp, nan_probe, 1);
  nan_probe += __shfl_xor_sync(full_warp, nan_probe, 2);
  const float scale = top > 0.0f ? max_value / top : 0.0f, factor = top * (1.0f / max_value) + nan_probe;
  std::uint32_t high[2] = {}, low[2] = {};
  int sum = 0;
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    const int value = __float2int_rn(x[i] * scale), top_byte = (value + 128) >> 8;
    sum += value;
    const int place = form == InputForm::nibbles_and_sums ? i % 4 * 2 + i / 4 : i;
    high[place / 4] |= (static_cast<std::uint32_t>(top_byte) & 255u) << (8 * (place % 4));
    low[place / 4] |= (static_cast<std::uint32_t>(value) & 255u) << (8 * (place % 4));
  }
  if constexpr (has_sums) {
    sum += __shfl_xor_sync(full_warp, sum, 1);
    sum += __shfl_xor_sync(full_warp, sum, 2);
  }
  if (!exists) return;
  std::byte* to = smem.in + 64 * (chunk / 4) + 8 * (chunk % 4);
  *reinterpret_cast<uint2*>(to) = make_uint2(high[0], high[1]);
  *reinterpret_cast<uint2*>(to + 32) = make_uint2(low[0], low[1]);
  if (chunk % 4 != 0) return;
  smem.factors[chunk / 4] = factor;
  if constexpr (has_sums) smem.sums[chunk / 4] = factor * static_cast<float>(sum);
}

template <InputForm form>
__device__ void store_octet(const float (&x)[8], const StreamSmem& smem, int chunk, bool exists) {
  if constexpr (form >= InputForm::bytes) {
    store_int16<form>(x, smem, chunk, exists);
    return;
  }
  uint4 words;
  if constexpr (form != InputForm::bf16) {
    words = scaled_octet<form>(x, smem, chunk, exists);
  } else {
    words = make_uint4(pack_bf16x2(x[0], x[1]), pack_bf16x2(x[2], x[3]), pack_bf16x2(x[4], x[5]),
                       pack_bf16x2(x[6], x[7]));
  }
  if (exists) reinterpret_cast<uint4*>(smem.in)[chunk] = words;
}

// Stages all inputs in runs of eight, several loads ahead. Inputs that already have the codec's form are
// copied.
template <InputForm form, int at_once>
__device__ void stage_input(const StreamCall& call, const StreamSmem& smem, int thread) {
  const int octets = call.vectors * call.cols / 8;
  const bool has_form =
      form == InputForm::bf16 ? !call.in_is_wide : form == InputForm::f16 && call.in_factor > 0.0f;
  if (has_form && call.column_order == nullptr) {
    for (int first = thread; first < octets; first += at_once * stream_threads) {
      uint4 words[at_once];
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        const int octet = first + j * stream_threads;
        if (octet < octets) words[j] = __ldcg(reinterpret_cast<const uint4*>(call.in) + octet);
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        const int octet = first + j * stream_threads;
        if (octet < octets) reinterpret_cast<uint4*>(smem.in)[octet] = words[j];
      }
    }
    return;
  }
  for (int first = 0; first < octets; first += at_once * stream_threads) {
    float x[at_once][8] = {};
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const int octet = first + j * stream_threads + thread;
      if (octet < octets) load_octet(x[j], call, octet);
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
      const int octet = first + j * stream_threads + thread;
      if (first + j * stream_threads >= octets) break;
      store_octet<form>(x[j], smem, octet, octet < octets);
    }
  }
}

}  // namespace inferno::cuda
