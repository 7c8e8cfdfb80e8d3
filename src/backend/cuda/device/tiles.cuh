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

}  // namespace inferno::cuda::tiles
