// Codecs of gemv.cuh for bf16 and f16.
#include <cuda_fp16.h>

#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

// A step is half a chunk: four lanes take 32 neighboring columns of a row, 64 bytes.
struct Codec16Bit {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 1, step = 32, ahead = 4, half_chunk = 512;
  struct Fragment {
    uint4 words = {};
  };
  __device__ static int element(int part, int) { return 8 * part; }
  __device__ static Fragment load(const std::byte* tile, const LanePosition& at) {
    return {
        load_once(tile + std::int64_t{at.base / step} * half_chunk + tiles::run_16_bit(at.group, at.part))};
  }
};

struct CodecBf16 : Codec16Bit {
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int, int, int) {
    out[0] = fragment.words.x;
    out[1] = fragment.words.y;
    out[2] = fragment.words.z;
    out[3] = fragment.words.w;
  }
};

struct CodecF16 : Codec16Bit {
  __device__ static std::uint32_t narrowed(std::uint32_t pair) {
    const float2 wide = __half22float2(*reinterpret_cast<const __half2*>(&pair));
    return pack_bf16x2(wide.x, wide.y);
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int, int, int) {
    out[0] = narrowed(fragment.words.x);
    out[1] = narrowed(fragment.words.y);
    out[2] = narrowed(fragment.words.z);
    out[3] = narrowed(fragment.words.w);
  }
};

}  // namespace

void gemv_bf16(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecBf16>(queue, call, mode, count);
}

void gemv_f16(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecF16>(queue, call, mode, count);
}

}  // namespace inferno::cuda
