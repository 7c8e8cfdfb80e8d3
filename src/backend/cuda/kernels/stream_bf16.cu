// Codecs of stream.cuh for bf16 and f16.
#include "backend/cuda/kernels/stream.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight columns of each 32. The other operand's even columns are the inputs of the first of two
// chunks and its odd ones those of the second, so that every lane ends with whole sums. f16 inputs have a
// factor for each 32 columns, because f16 has too small a range.
template <bool F16>
struct Codec {
  static constexpr InputForm form = F16 ? InputForm::f16 : InputForm::bf16;
  static constexpr bool whole = true;

  struct Inputs {
    const std::byte* x;
    const float* factors;
    __device__ void load(const StreamRoom& room, int chunk, int, int lane) {
      x = room.in + chunk * 128 + lane % 4 * 16;
      factors = room.factors + 2 * chunk;
    }
  };

  __device__ static void add(float (&c)[4], float (&e)[4], uint4 w, uint4 v, uint4 b) {
    if constexpr (F16) {
      multiply_add_f16(c, w.x, v.x, w.y, v.y, b.x, b.y);
      multiply_add_f16(e, w.z, v.z, w.w, v.w, b.z, b.w);
    } else {
      multiply_add(c, w.x, v.x, w.y, v.y, b.x, b.y);
      multiply_add(e, w.z, v.z, w.w, v.w, b.z, b.w);
    }
  }
  __device__ static uint4 words(const std::byte* from) { return *reinterpret_cast<const uint4*>(from); }

  __device__ static float multiply(const std::byte* tile, int chunks, const Inputs& in, int lane) {
    const bool odd = lane / 4 % 2 != 0;
    tile += tiles::run_16_bit(lane / 4, lane % 4);
    float c[4] = {}, e[4] = {}, sum = 0.0f;
#pragma unroll(F16 ? 1 : 2)
    for (int chunk = 0; chunk < chunks; chunk += 2) {
      const bool two = chunk + 1 < chunks;
      const std::byte* x = in.x + (chunk + (odd && two ? 1 : 0)) * 128;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const std::byte* from = tile + 1024 * chunk + 512 * half;
        add(c, e, words(from), two ? words(from + 1024) : make_uint4(0, 0, 0, 0), words(x + 64 * half));
        if constexpr (F16) {
          sum += (c[0] + e[0]) * in.factors[2 * chunk + half];
          if (two) sum += (c[3] + e[3]) * in.factors[2 * chunk + 2 + half];
#pragma unroll
          for (int i = 0; i < 4; ++i) c[i] = e[i] = 0.0f;
        }
      }
    }
    return F16 ? sum : (c[0] + e[0]) + (c[3] + e[3]);
  }
};

}  // namespace

void stream_bf16(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec<false>>(queue, call, mode, blocks, shared);
}
void stream_f16(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  start_stream<Codec<true>>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
