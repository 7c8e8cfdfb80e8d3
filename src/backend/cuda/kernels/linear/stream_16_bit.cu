// Codecs of stream_kernel.cuh for bf16 and f16.
#include "backend/cuda/kernels/linear/stream_kernel.cuh"

namespace inferno::cuda {
namespace {

// A lane takes eight columns of each 32. Even columns of operand b are the first tile's input, odd columns
// the second's, so that every lane ends with complete sums. f16 inputs have a factor per 32 columns, because
// of f16's small range.
template <bool F16>
struct Codec {
  static constexpr InputForm form = F16 ? InputForm::f16 : InputForm::bf16;
  static constexpr bool whole = true, one_part = false;

  template <bool>
  struct Sums {
    struct Inputs {
      const std::byte* x;
      const float *first, *second;  // factors
      __device__ void load(const StreamSmem& smem, int a, int b, int, int lane) {
        x = smem.in + (lane / 4 % 2 == 0 ? a : b) * 128 + lane % 4 * 16;
        first = smem.factors + 2 * a;
        second = smem.factors + 2 * b;
      }
    };
    float c[4] = {}, e[4] = {};
    float2 scaled = {};
    __device__ float2 rows(int) const { return F16 ? scaled : make_float2(c[0] + e[0], c[3] + e[3]); }

    __device__ void multiply(uint4 w, uint4 v, uint4 b) {
      if constexpr (F16) {
        mma_f16(c, w.x, v.x, w.y, v.y, b.x, b.y);
        mma_f16(e, w.z, v.z, w.w, v.w, b.z, b.w);
      } else {
        mma_bf16(c, w.x, v.x, w.y, v.y, b.x, b.y);
        mma_bf16(e, w.z, v.z, w.w, v.w, b.z, b.w);
      }
    }
    __device__ void scale(float first, float second) {
      scaled.x += (c[0] + e[0]) * first;
      scaled.y += (c[3] + e[3]) * second;
#pragma unroll
      for (int i = 0; i < 4; ++i) c[i] = e[i] = 0.0f;
    }
    __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
      const auto words = [](const std::byte* from) { return *reinterpret_cast<const uint4*>(from); };
      const std::byte* a = slice.data + tiles::run_16_bit(lane / 4, lane % 4);
      const std::byte* b = a + slice.to_second;
#pragma unroll 1
      for (int chunk = 0; chunk < slice.chunks; ++chunk) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int at = 1024 * chunk + 512 * half, block = 2 * chunk + half;
          multiply(words(a + at), words(b + at), words(in.x + 64 * block));
          if constexpr (F16) scale(in.first[block], in.second[block]);
        }
      }
    }
  };
};

}  // namespace

void stream_bf16(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<false>>(queue, call, mode, blocks, shared);
}
void stream_f16(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Codec<true>>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
