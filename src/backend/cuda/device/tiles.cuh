// Layout::tiled: eight rows of a weight together, cut into chunks of columns. A chunk holds the codes and the
// scales of its columns, so that any range of chunks is contiguous: one TMA bulk copy. Within a chunk, bytes
// are ordered as the lanes (g = row, t) of a warp read them: 32 lanes read adjacent addresses. Missing
// columns and rows in the last chunk and tile are zeros.
//
// bf16, f16   64 columns, 1024 bytes. Two halves of 32 columns, each eight rows of 64 bytes, whose 16-byte
//             units are permuted by the 64-byte swizzle.
// q8_0        64 columns, 544 bytes. A lane's 16 bytes are columns 8 t to 8 t + 7 of the first block and of
//             the second. Then two f16 scales per row.
// mxfp4       64 columns, 272 bytes. 32 bytes per row in order, words as in layouts.cuh. Then two exponents
//             per row.
// q4_k        256 columns, 1152 bytes. The eight rows' 16-byte headers; then twice 64 bytes per row: 16 for
//             each lane, columns 8 t to 8 t + 7 of the first two blocks (low and high nibbles), then of the
//             next two.
// q4_0, int4, int8, fp8, nvfp4, nf4, fp4
//             128 columns: the eight rows' codes, then the scale of each block and row, then what else a
//             block has (zero points, or NVFP4's scales of 16 columns). Four-bit codes: 64 bytes per row,
//             16 for each lane, columns 8 t to 8 t + 7 of each 32 in a word. Bytes: twice 64 per row, 16 for
//             each lane, columns 8 t to 8 t + 7 of the first 32 and of the second. Words as in scaled.cuh.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "backend/cuda/dispatch/formats.h"

namespace inferno::cuda::tiles {

// Offsets within a chunk of eight columns of row g; `octet` is their index in the chunk.
__host__ __device__ constexpr int run_16_bit(int g, int octet) {  // 16 bytes
  return 512 * (octet / 4) + 64 * g + 16 * ((octet % 4) ^ (g / 2 % 4));
}
__host__ __device__ constexpr int run_q8_0(int g, int octet) {  // 8 bytes
  return 64 * g + 16 * (octet % 4) + 8 * (octet / 4);
}
__host__ __device__ constexpr int scale_q8_0(int g, int block) {
  return 512 + 4 * g + 2 * block;
}
__host__ __device__ constexpr int run_mxfp4(int g, int octet) {  // 4 bytes
  return 32 * g + 4 * octet;
}
__host__ __device__ constexpr int exponent_mxfp4(int g, int block) {
  return 256 + 2 * g + block;
}
__host__ __device__ constexpr int head_q4_k(int g) {
  return 16 * g;
}
// 8 bytes; the octet is in their low nibbles for even blocks of 32 and in the high nibbles for odd blocks.
__host__ __device__ constexpr int run_q4_k(int g, int octet) {
  return 128 + 512 * (octet / 16) + 64 * g + 16 * (octet % 4) + 8 * (octet / 8 % 2);
}

// Blocks of 32 to 128 columns under one scale (tensor/blocks/scaled.h, Q4_0): what a chunk of them holds.
struct ScaledChunk {
  int block = 0;           // columns under one scale
  bool has_bytes = false;  // codes of eight bits; otherwise of four
  int scale_bytes = 4;     // float or f16
  int extra_bytes = 0;     // of a block besides its scale and codes
  __host__ __device__ constexpr int blocks() const { return 128 / block; }
  __host__ __device__ constexpr int code_bytes() const { return has_bytes ? 1024 : 512; }
  // 8 bytes if has_bytes, otherwise 4.
  __host__ __device__ constexpr int run(int g, int octet) const {
    if (has_bytes) return 512 * (octet / 8) + 64 * g + 16 * (octet % 4) + 8 * (octet / 4 % 2);
    return 64 * g + 16 * (octet % 4) + 4 * (octet / 4);
  }
  __host__ __device__ constexpr int scale(int g, int number) const {
    return code_bytes() + scale_bytes * (8 * number + g);
  }
  __host__ __device__ constexpr int extra(int g, int number) const {
    return code_bytes() + 8 * blocks() * scale_bytes + extra_bytes * (blocks() * g + number);
  }
  __host__ __device__ constexpr int bytes() const {
    return (code_bytes() + 8 * blocks() * (scale_bytes + extra_bytes) + 15) / 16 * 16;
  }
};
template <Block B>
constexpr ScaledChunk scaled_chunk_of() {
  const int scale_bytes = blocks::Scaled<B> ? 4 : 2, others = static_cast<int>(sizeof(B)) - scale_bytes;
  const bool has_bytes = others >= B::elements;
  return {B::elements, has_bytes, scale_bytes, others - (has_bytes ? B::elements : B::elements / 2)};
}
constexpr ScaledChunk scaled_chunk_of(WeightFormat format) {
  return visit(format, []<Block B>(B) { return scaled_chunk_of<B>(); });
}

}  // namespace inferno::cuda::tiles
