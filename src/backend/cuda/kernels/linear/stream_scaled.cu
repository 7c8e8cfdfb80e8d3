// Codecs of stream_kernel.cuh for blocks under one scale, which is applied to the sums of a block.
#include "backend/cuda/device/scaled.cuh"
#include "backend/cuda/kernels/linear/stream_bytes.cuh"

namespace inferno::cuda {
namespace {

// Integers less a zero point, multiplied as bytes; the sums of the input take the zero point away.
template <class Tile>
struct ByteCodec {
  static constexpr bool has_bytes = Tile::shape().has_bytes;
  static constexpr InputForm form = has_bytes ? InputForm::bytes_and_sums : InputForm::nibbles_and_sums;
  static constexpr bool whole = false, one_part = false;

  // Of a chunk: of the lane's column of operand b, and of the block that the lane's sums belong to.
  struct Input {
    const std::byte* x;
    const float *factors, *sums;
    __device__ void load(const StreamSmem& smem, int chunk, int lane) {
      x = smem.in + 64 * (4 * chunk + lane / 8);
      factors = smem.factors + 4 * chunk + lane % 4;
      sums = smem.sums + 4 * chunk + lane % 4;
    }
  };

  __device__ static ByteWeights weights(const std::byte* chunk, int lane) {
    const auto words = [&](int at) { return *reinterpret_cast<const uint4*>(chunk + 16 * lane + at); };
    const uint4 w = words(0);
    if constexpr (has_bytes) {
      const uint4 v = words(512);
      return {{{w.x, w.y}, {w.z, w.w}, {v.x, v.y}, {v.z, v.w}}};
    } else {
      const auto halves = [](std::uint32_t word) {
        return make_uint2(word & 0x0F0F0F0Fu, word >> 4 & 0x0F0F0F0Fu);
      };
      return {{halves(w.x), halves(w.y), halves(w.z), halves(w.w)}};
    }
  }
  __device__ static float multiply(const std::byte* chunk, const ByteColumns& columns, const Input& in,
                                   int number, int lane) {
    const int g = lane / 4, block = lane % 4 / Tile::block_runs;
    const float product = mma_four_blocks<true>(weights(chunk, lane), columns, lane);
    float zero = 8.0f;
    if constexpr (Tile::shape().extra_bytes > 0) {  // a byte in the low bits of 2^23
      const auto byte = static_cast<std::uint32_t>(chunk[Tile::shape().extra(g, block)]);
      zero = __uint_as_float(0x4B000000u | byte) - 8388608.0f;
    }
    return Tile::scale(chunk, g, block) * (product * in.factors[4 * number] - zero * in.sums[4 * number]);
  }

  template <bool experts>
  struct Sums {
    struct Inputs {
      Input first, second;
      __device__ void load(const StreamSmem& smem, int a, int b, int, int lane) {
        first.load(smem, a, lane);
        if constexpr (experts) second.load(smem, b, lane);
      }
    };
    float2 sums = {};
    __device__ float2 rows(int) const { return sums; }

    __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
#pragma unroll 1
      for (int chunk = 0; chunk < slice.chunks; ++chunk) {
        const std::byte* from = slice.data + chunk * Tile::shape().bytes();
        const ByteColumns columns(in.first.x + 256 * chunk, lane);
        sums.x += multiply(from, columns, in.first, chunk, lane);
        if constexpr (experts) {
          const ByteColumns others(in.second.x + 256 * chunk, lane);
          sums.y += multiply(from + slice.to_second, others, in.second, chunk, lane);
        } else {
          sums.y += multiply(from + slice.to_second, columns, in.first, chunk, lane);
        }
      }
    }
  };
};

// E4M3 as f16, in which it is exact. Even columns of operand b are the first tile's input, odd columns the
// second's, so that every lane ends with complete sums.
template <class Tile>
struct Fp8Codec {
  static constexpr InputForm form = InputForm::f16_128_fp8;
  static constexpr bool whole = true, one_part = false;
  static_assert(Tile::blocks == 1);

  template <bool experts>
  struct Sums {
    struct Inputs {
      const std::byte* x;
      const float *first, *other;
      __device__ void load(const StreamSmem& smem, int a, int b, int, int lane) {
        x = smem.in + (lane / 4 % 2 == 0 ? a : b) * 256 + lane % 4 * 16;
        first = smem.factors + 4 * a;
        if constexpr (experts) other = smem.factors + 4 * b;
      }
      __device__ float second(int chunk) const { return experts ? other[4 * chunk] : first[4 * chunk]; }
    };
    float2 sums = {};
    __device__ float2 rows(int) const { return sums; }

    // Columns 2, 0, 3 and 1 of both tiles.
    __device__ static void multiply(float (&c)[4], std::uint32_t w, std::uint32_t v, std::uint32_t low,
                                    std::uint32_t high) {
      mma_f16(c, f16_of_fp8(w), f16_of_fp8(v), f16_of_fp8(w >> 16), f16_of_fp8(v >> 16), low, high);
    }
    __device__ void add(const StreamSlice& slice, const Inputs& in, int lane) {
      const int g = lane / 4;
#pragma unroll 1
      for (int chunk = 0; chunk < slice.chunks; ++chunk) {
        const std::byte* first = slice.data + chunk * Tile::shape().bytes();
        const std::byte* second = first + slice.to_second;
        float c[4] = {}, e[4] = {};
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          asm volatile("" ::: "memory");  // loads of both halves at once would spill registers
          const uint4 a = *reinterpret_cast<const uint4*>(first + 16 * lane + 512 * half);
          const uint4 b = *reinterpret_cast<const uint4*>(second + 16 * lane + 512 * half);
          const auto* x = reinterpret_cast<const uint4*>(in.x + 256 * chunk + 128 * half);
          const uint4 p = x[0], q = x[4];
          multiply(c, a.x, b.x, p.x, p.y);
          multiply(e, a.y, b.y, p.z, p.w);
          multiply(c, a.z, b.z, q.x, q.y);
          multiply(e, a.w, b.w, q.z, q.w);
        }
        sums.x += (c[0] + e[0]) * (Tile::scale(first, g, 0) * in.first[4 * chunk]);
        sums.y += (c[3] + e[3]) * (Tile::scale(second, g, 0) * in.second(chunk));
      }
    }
  };
};

// E2M1 as f16 times 2^-14. Each of the eight columns of operand b belongs to one of the groups of sixteen of
// a chunk and is zero for the others, so that every group gets its own sum: lane (g, t) ends with those of
// groups 2 t and 2 t + 1 of row g of both tiles.
template <class Tile>
struct Nvfp4Codec {
  static constexpr InputForm form = InputForm::f16_128;
  static constexpr bool whole = false, one_part = false;
  static_assert(Tile::codes == Codes::nvfp4 && Tile::blocks == 2);

  struct Input {
    uint4 x[4] = {};  // of each run of eight columns: only one of them is ever loaded
    const std::byte* from;
    const float* factors;
    __device__ void point(const StreamSmem& smem, int chunk, int lane) {
      from = smem.in + 256 * chunk + 64 * (lane / 8) + 16 * (lane % 4);
      factors = smem.factors + 4 * chunk;
    }
    __device__ void read(int chunk, int lane) {
      const bool mine = lane % 4 / 2 == lane / 4 % 2;
#pragma unroll
      for (int run = 0; run < 4; ++run) {
        asm volatile(
            "{ .reg .pred own; setp.ne.u32 own, %5, 0; @own ld.shared.v4.u32 {%0, %1, %2, %3}, [%4]; }"
            : "+r"(x[run].x), "+r"(x[run].y), "+r"(x[run].z), "+r"(x[run].w)
            : "r"(shared_address(from + 256 * chunk)), "r"(static_cast<unsigned>(mine && lane / 8 == run))
            : "memory");
      }
    }
  };
  __device__ static float scaled(float first, float second, const std::byte* chunk, float factor, int lane) {
    const int g = lane / 4, t = lane % 4;
    const auto codes = *reinterpret_cast<const std::uint16_t*>(chunk + Tile::shape().extra(g, 0) + 2 * t);
    const std::uint32_t pair = f16_of_fp8(codes);
    const float2 scales = __half22float2(*reinterpret_cast<const __half2*>(&pair));
    constexpr float unit = 0x1p14f / Tile::unit;
    return (first * scales.x + second * scales.y) * (Tile::scale(chunk, g, t / 2) * (factor * unit));
  }

  template <bool experts>
  struct Sums {
    struct Inputs {
      Input first, second;
      __device__ void load(const StreamSmem& smem, int a, int b, int, int lane) {
        first.point(smem, a, lane);
        if constexpr (experts) second.point(smem, b, lane);
      }
    };
    float2 sums = {};
    __device__ float2 rows(int) const { return sums; }

    __device__ void add(const StreamSlice& slice, Inputs& in, int lane) {
#pragma unroll 1
      for (int chunk = 0; chunk < slice.chunks; ++chunk) {
        const std::byte* first = slice.data + chunk * Tile::shape().bytes();
        const std::byte* second = first + slice.to_second;
        const uint4 w = *reinterpret_cast<const uint4*>(first + 16 * lane);
        const uint4 v = *reinterpret_cast<const uint4*>(second + 16 * lane);
        in.first.read(chunk, lane);
        if constexpr (experts) in.second.read(chunk, lane);
        float c[4] = {}, e[4] = {}, d[4] = {};  // d: with the second input
#pragma unroll
        for (int run = 0; run < 4; ++run) {
          std::uint32_t a[4], b[4];
          unpack_mxfp4_f16(a, run == 0 ? w.x : run == 1 ? w.y : run == 2 ? w.z : w.w);
          unpack_mxfp4_f16(b, run == 0 ? v.x : run == 1 ? v.y : run == 2 ? v.z : v.w);
          const uint4& x = in.first.x[run];
          mma_f16(c, a[0], b[0], a[1], b[1], x.x, x.y);
          mma_f16(e, a[2], b[2], a[3], b[3], x.z, x.w);
          if constexpr (experts) {
            const uint4& y = in.second.x[run];
            mma_f16(d, a[0], b[0], a[1], b[1], y.x, y.y);
            mma_f16(d, a[2], b[2], a[3], b[3], y.z, y.w);
          }
        }
        sums.x += scaled(c[0] + e[0], c[1] + e[1], first, in.first.factors[4 * chunk], lane);
        if constexpr (experts) {
          sums.y += scaled(d[2], d[3], second, in.second.factors[4 * chunk], lane);
        } else {
          sums.y += scaled(c[2] + e[2], c[3] + e[3], second, in.first.factors[4 * chunk], lane);
        }
      }
    }
  };
};

}  // namespace

void stream_q4_0(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<ByteCodec<TileQ4_0>>(queue, call, mode, blocks, shared);
}
void stream_int4_128(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<ByteCodec<TileInt4_128>>(queue, call, mode, blocks, shared);
}
void stream_int8_64(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<ByteCodec<TileInt8_64>>(queue, call, mode, blocks, shared);
}
void stream_fp8_128(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Fp8Codec<TileFp8_128>>(queue, call, mode, blocks, shared);
}
void stream_nvfp4_64(const Queue& queue, const StreamCall& call, StreamMode mode, int blocks, int shared) {
  launch_stream<Nvfp4Codec<TileNvfp4_64>>(queue, call, mode, blocks, shared);
}

}  // namespace inferno::cuda
