// From the file's blocks to rows of codes and rows of scales: one thread for each block.
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct Split {
  std::byte* to;
  const std::byte* from;
  std::int64_t blocks, row_bytes;
  RowRange rows;
  int row_blocks;
  std::int32_t* too_large;
};

__device__ void split_block(const Split& split, const blocks::Q8_0& block, std::byte* row, std::int64_t b) {
  auto* codes = reinterpret_cast<uint4*>(row + b * 32);
  std::uint32_t words[8];
  for (int i = 0; i < 8; ++i) {
    words[i] = 0;
    for (int j = 0; j < 4; ++j) {
      words[i] |= static_cast<std::uint32_t>(static_cast<std::uint8_t>(block.quants[4 * i + j])) << (8 * j);
    }
  }
  codes[0] = make_uint4(words[0], words[1], words[2], words[3]);
  codes[1] = make_uint4(words[4], words[5], words[6], words[7]);
  reinterpret_cast<std::uint16_t*>(row + std::int64_t{split.row_blocks} * 32)[b] = block.scale;
}

__device__ void split_block(const Split& split, const blocks::Mxfp4& block, std::byte* row, std::int64_t b) {
  std::uint32_t words[4] = {};
  for (int i = 0; i < 32; ++i) {
    const std::uint32_t byte = block.nibbles[i % 16];
    const std::uint32_t code = i < 16 ? byte & 0xFu : byte >> 4;
    words[i / 8] |= place_mxfp4(code, i % 8);
  }
  reinterpret_cast<uint4*>(row)[b] = make_uint4(words[0], words[1], words[2], words[3]);
  row[std::int64_t{split.row_blocks} * 16 + b] = static_cast<std::byte>(block.exponent);
  if (block.exponent > 128) *split.too_large = 1;
}

__device__ void split_block(const Split& split, const blocks::Q6_K& block, std::byte* row, std::int64_t b) {
  const std::int64_t blocks = split.row_blocks;
  for (int i = 0; i < 128; ++i) row[b * 128 + i] = static_cast<std::byte>(block.low[i]);
  std::byte* high = row + blocks * 128;
  for (int i = 0; i < 64; ++i) high[b * 64 + i] = static_cast<std::byte>(block.high[i]);
  std::byte* scales = high + blocks * 64;
  for (int i = 0; i < 16; ++i) scales[b * 16 + i] = static_cast<std::byte>(block.groups[i]);
  reinterpret_cast<std::uint16_t*>(scales + blocks * 16)[b] = block.scale;
}

template <class B>
__global__ void __launch_bounds__(256) split_kernel(const Split split) {
  wait_for_previous();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < split.blocks; i += step) {
    const B& block = reinterpret_cast<const B*>(split.from)[i];
    const std::int64_t row = decoder_row(split.rows.first + i / split.row_blocks, split.rows.alternating);
    split_block(split, block, split.to + row * split.row_bytes, i % split.row_blocks);
  }
}

}  // namespace

void split_rows(const Queue& queue, std::byte* to, const std::byte* from, const WeightView& shape,
                const RowRange& rows, std::int32_t* too_large) {
  const int row_blocks = shape.cols / block_elements(shape.format);
  const Split split = {to, from, rows.count * row_blocks, shape.row_bytes, rows, row_blocks, too_large};
  const dim3 grid(std::min(blocks_for(split.blocks, 256), 4096u));
  if (shape.format == WeightFormat::q8_0) {
    launch(queue, {.grid = grid, .threads = 256}, split_kernel<blocks::Q8_0>, split);
  } else if (shape.format == WeightFormat::q6_k) {
    launch(queue, {.grid = grid, .threads = 256}, split_kernel<blocks::Q6_K>, split);
  } else {
    launch(queue, {.grid = grid, .threads = 256}, split_kernel<blocks::Mxfp4>, split);
  }
}

}  // namespace inferno::cuda
