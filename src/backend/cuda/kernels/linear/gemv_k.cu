// Codecs of gemv.cuh for Q4_K (in tiles), Q5_K (in the file's layout) and Q6_K (split by field).
#include <cuda_fp16.h>

#include "backend/cuda/kernels/linear/gemv.cuh"

namespace inferno::cuda {
namespace {

// A step is half a chunk. A lane takes eight bytes each of two pairs of groups: low nibbles belong to the
// first of a pair, high nibbles to the second.
struct CodecQ4_K {
  static constexpr bool has_tiles = true;
  static constexpr int runs = 4, step = 128, ahead = 2;
  struct Fragment {
    uint4 words = {}, head = {};
  };
  __device__ static int element(int part, int run) { return 8 * part + 32 * run; }
  __device__ static Fragment load(const std::byte* tile, const LanePosition& at) {
    constexpr tiles::Chunk shape = tiles::chunk_of(WeightFormat::q4_k);
    const std::byte* chunk = tile + std::int64_t{at.base / shape.cols} * shape.bytes;
    return {load_once(chunk + tiles::run_q4_k(at.group, at.base % shape.cols / 8 + at.part)),
            __ldg(reinterpret_cast<const uint4*>(chunk + tiles::head_q4_k(at.group)))};
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int base, int, int run) {
    const uint4& w = fragment.words;
    const int shift = 4 * (run % 2);
    grouped_byte_values(out, (run < 2 ? w.x : w.z) >> shift & 0x0F0F0F0Fu,
                        (run < 2 ? w.y : w.w) >> shift & 0x0F0F0F0Fu,
                        scales_k(fragment.head, base % 256 / 32 + run));
  }
};

// The file's blocks: 16 bytes of scales, 32 of fifth bits, 128 of codes, each aligned to 16 bytes. A lane
// takes 16 bytes of codes, whose low nibbles belong to one group of 32 and whose high nibbles to the next.
struct CodecQ5_K {
  static constexpr bool has_tiles = false;
  static constexpr int runs = 4, step = 128, ahead = 2, codes = 48;
  struct Fragment {
    uint4 words = {}, head = {}, fifths = {};
  };
  __device__ static int element(int part, int run) {
    return 64 * (part / 2) + 16 * (part % 2) + 8 * (run % 2) + 32 * (run / 2);
  }
  __device__ static Fragment load(const std::byte* row, const LanePosition& at) {
    const std::byte* block =
        row + std::int64_t{at.base / 256} * static_cast<std::int64_t>(sizeof(blocks::Q5_K));
    return {load_once(block + codes + at.base % 256 / 2 + 16 * at.part),
            __ldg(reinterpret_cast<const uint4*>(block)),
            __ldg(reinterpret_cast<const uint4*>(block + 16) + at.part % 2)};
  }
  __device__ static std::uint32_t word_of(const uint4& words, int run, int half) {
    if (run % 2 == 0) return half == 0 ? words.x : words.y;
    return half == 0 ? words.z : words.w;
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int base, int part,
                                int run) {
    const int group = base % 256 / 32 + 2 * (part / 2) + run / 2;
    std::uint32_t bytes[2];
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      bytes[half] = (word_of(fragment.words, run, half) >> (4 * (run / 2)) & 0x0F0F0F0Fu) |
                    (word_of(fragment.fifths, run, half) >> group & 0x01010101u) << 4;
    }
    grouped_byte_values(out, bytes[0], bytes[1], scales_k(fragment.head, group));
  }
};

// A step is half a block. A lane takes 16 bytes of low bits, whose nibbles are 64 columns apart, the 16 bytes
// of high bits that belong to both, and the two groups' scales.
struct CodecQ6_K {
  static constexpr bool has_tiles = false;
  static constexpr int runs = 4, step = 128, ahead = 2;
  struct Fragment {
    uint4 low = {}, high = {};
    std::int8_t scales[2] = {};
    std::uint16_t factor = 0;
  };
  __device__ static int element(int part, int run) { return 16 * part + 8 * (run % 2) + 64 * (run / 2); }
  __device__ static Fragment load(const std::byte* row, const LanePosition& at) {
    const SplitQ6_K layout = {at.cols};
    const auto* scales = layout.scales(row) + at.base / 16 + at.part;
    return {load_once(row + at.base / 2 + 16 * at.part),
            __ldg(reinterpret_cast<const uint4*>(layout.high(row) + at.base / 4) + at.part % 2),
            {__ldg(scales), __ldg(scales + 4)},
            __ldg(layout.factors(row) + at.base / 256)};
  }
  __device__ static std::uint32_t word_of(const uint4& words, int run, int half) {
    if (run % 2 == 0) return half == 0 ? words.x : words.y;
    return half == 0 ? words.z : words.w;
  }
  __device__ static void decode(std::uint32_t (&out)[4], const Fragment& fragment, int, int part, int run) {
    const float scale =
        __half2float(__ushort_as_half(fragment.factor)) * static_cast<float>(fragment.scales[run / 2]);
    const int shift = 2 * (part / 2) + 4 * (run / 2);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const std::uint32_t low = word_of(fragment.low, run, half) >> (4 * (run / 2)) & 0x0F0F0F0Fu;
      const std::uint32_t bytes = low | (word_of(fragment.high, run, half) >> shift & 0x03030303u) << 4;
      byte_values(out[2 * half], out[2 * half + 1], bytes, scale, -(128.0f + 32.0f) * scale);
    }
  }
};

}  // namespace

void gemv_q4_k(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecQ4_K>(queue, call, mode, count);
}

void gemv_q5_k(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecQ5_K>(queue, call, mode, count);
}

void gemv_q6_k(const Queue& queue, const GemvCall& call, GemvMode mode, int count) {
  launch_gemv<CodecQ6_K>(queue, call, mode, count);
}

}  // namespace inferno::cuda
