// From the file's blocks to the layouts that kernels read, in the decoder's row order. Bound by memory, and
// much faster than the PCIe transfer of the blocks.
#include "backend/cuda/device/scaled.cuh"
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/format_kernels.h"
#include "backend/cuda/kernels/linear/weights.h"

namespace inferno::cuda {

struct Packing {
  std::byte* to;
  const std::byte* from;
  std::int64_t from_bytes, to_bytes;  // bytes of a source row; of a target row or tile
  RowRange rows;
  int matrix_rows, cols;
  std::int32_t* too_large;
};

namespace {

constexpr int warps = 8;

// Eight bytes that are aligned to two.
__device__ uint2 load_pairs(const std::byte* from) {
  const auto* pairs = reinterpret_cast<const std::uint16_t*>(from);
  return make_uint2(pairs[0] | std::uint32_t{pairs[1]} << 16, pairs[2] | std::uint32_t{pairs[3]} << 16);
}

// Lane t of row g, which writes 16 bytes of chunk number `number`, if the row has these columns.
struct Lane {
  std::byte* chunk;
  int g, t, number;
};

// bf16 and f16: runs t and t + 4 of eight columns.
struct Pack16Bit {
  static constexpr WeightFormat format = WeightFormat::bf16;
  __device__ static void pack(const Packing& packing, const Lane& lane, const std::byte* row) {
#pragma unroll
    for (int octet = lane.t; octet < 8; octet += 4) {
      const int k = 64 * lane.number + 8 * octet;
      if (k >= packing.cols) return;
      std::byte* to = lane.chunk + tiles::run_16_bit(lane.g, octet);
      if (packing.cols % 8 == 0) {
        *reinterpret_cast<uint4*>(to) = *reinterpret_cast<const uint4*>(row + 2 * std::int64_t{k});
      } else {
        const auto* from = reinterpret_cast<const std::uint16_t*>(row) + k;
        for (int i = 0; i < min(8, packing.cols - k); ++i) {
          reinterpret_cast<std::uint16_t*>(to)[i] = from[i];
        }
      }
    }
  }
};

// Eight codes of each of two blocks.
struct PackQ8_0 {
  static constexpr WeightFormat format = WeightFormat::q8_0;
  __device__ static void pack(const Packing& packing, const Lane& lane, const std::byte* row) {
    const auto* blocks = reinterpret_cast<const blocks::Q8_0*>(row) + 2 * lane.number;
    const bool has_second = 64 * lane.number + 32 < packing.cols;
    uint2 codes[2] = {};
#pragma unroll
    for (int block = 0; block < 2; ++block) {
      if (block == 1 && !has_second) continue;
      codes[block] = load_pairs(reinterpret_cast<const std::byte*>(blocks[block].quants) + 8 * lane.t);
      if (lane.t == block) {
        *reinterpret_cast<std::uint16_t*>(lane.chunk + tiles::scale_q8_0(lane.g, block)) =
            blocks[block].scale;
      }
    }
    *reinterpret_cast<uint4*>(lane.chunk + tiles::run_q8_0(lane.g, lane.t)) =
        make_uint4(codes[0].x, codes[0].y, codes[1].x, codes[1].y);
  }
};

// Half a block: sixteen codes in two words.
struct PackMxfp4 {
  static constexpr WeightFormat format = WeightFormat::mxfp4;
  __device__ static void pack(const Packing& packing, const Lane& lane, const std::byte* row) {
    const int number = 2 * lane.number + lane.t / 2;
    if (32 * number >= packing.cols) return;
    const blocks::Mxfp4& block = reinterpret_cast<const blocks::Mxfp4*>(row)[number];
    const int shift = lane.t % 2 * 4;
    std::uint32_t words[2] = {};
#pragma unroll
    for (int i = 0; i < 16; ++i) {
      words[i / 8] |= pack_mxfp4_code(std::uint32_t{block.nibbles[i]} >> shift & 0xFu, i % 8);
    }
    *reinterpret_cast<uint2*>(lane.chunk + tiles::run_mxfp4(lane.g, 2 * lane.t)) =
        make_uint2(words[0], words[1]);
    if (lane.t % 2 != 0) return;
    lane.chunk[tiles::exponent_mxfp4(lane.g, lane.t / 2)] = static_cast<std::byte>(block.exponent);
    if (block.exponent > 128) *packing.too_large = 1;
  }
};

// Eight bytes of each of four pairs of groups.
struct PackQ4_K {
  static constexpr WeightFormat format = WeightFormat::q4_k;
  __device__ static void pack(const Packing&, const Lane& lane, const std::byte* row) {
    const blocks::Q4_K& block = reinterpret_cast<const blocks::Q4_K*>(row)[lane.number];
    const auto* codes = reinterpret_cast<const uint2*>(block.nibbles) + lane.t;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const uint2 a = codes[8 * half], b = codes[8 * half + 4];
      *reinterpret_cast<uint4*>(lane.chunk + tiles::run_q4_k(lane.g, 16 * half + lane.t)) =
          make_uint4(a.x, a.y, b.x, b.y);
    }
    if (lane.t == 0) {
      *reinterpret_cast<uint4*>(lane.chunk + tiles::head_q4_k(lane.g)) =
          *reinterpret_cast<const uint4*>(&block);
    }
  }
};

// A run of each 32 columns, and the scale and the rest of block t.
template <class Tile>
struct PackScaled {
  static constexpr WeightFormat format = Tile::format;
  using B = typename Tile::Stored;

  __device__ static std::uint32_t code_at(const B& block, int i) {
    if constexpr (Tile::shape().has_bytes) {
      return block.codes[i];
    } else {
      return static_cast<std::uint32_t>(blocks::nibble_in_groups(block.nibbles, i));
    }
  }
  // The bits of code i of a run, in word i / 4 if codes are bytes.
  __device__ static std::uint32_t placed(std::uint32_t code, int i) {
    if constexpr (Tile::codes == Codes::nvfp4) return pack_mxfp4_code(code, i);
    if constexpr (Tile::codes == Codes::int8) return code << (8 * (i % 4));
    if constexpr (Tile::codes == Codes::fp8) return code << fp8_shift(i % 4);
    return code << nibble_shift(i);
  }
  __device__ static void pack(const Packing& packing, const Lane& lane, const std::byte* row) {
    const int first = 128 * lane.number;
    const B* from = reinterpret_cast<const B*>(row) + first / B::elements;
    for (int run = 0; run < Tile::runs; ++run) {
      const int k = Tile::element(lane.t, run);
      if (first + k >= packing.cols) return;
      const B& block = from[k / B::elements];
      std::uint32_t words[2] = {};
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        words[Tile::shape().has_bytes ? i / 4 : 0] |= placed(code_at(block, k % B::elements + i), i);
      }
      std::byte* to = lane.chunk + Tile::shape().run(lane.g, k / 8);
      if constexpr (Tile::shape().has_bytes) {
        *reinterpret_cast<uint2*>(to) = make_uint2(words[0], words[1]);
      } else {
        *reinterpret_cast<std::uint32_t*>(to) = words[0];
      }
      if (run == 0) pack_rest(packing, lane, from);
    }
  }
  __device__ static void pack_rest(const Packing& packing, const Lane& lane, const B* from) {
    if (lane.t >= Tile::blocks || 128 * lane.number + lane.t * B::elements >= packing.cols) return;
    const B& block = from[lane.t];
    std::byte* scale = lane.chunk + Tile::shape().scale(lane.g, lane.t);
    std::byte* extra = lane.chunk + Tile::shape().extra(lane.g, lane.t);
    if constexpr (Tile::shape().scale_bytes == 2) {
      *reinterpret_cast<std::uint16_t*>(scale) = block.scale;
    } else if constexpr (Tile::codes == Codes::nvfp4) {
      *reinterpret_cast<float*>(scale) = block.factor.value();
      for (int i = 0; i < Tile::shape().extra_bytes; ++i) extra[i] = static_cast<std::byte>(block.scales[i]);
    } else {
      *reinterpret_cast<float*>(scale) = block.scale.value();
      if constexpr (Tile::shape().extra_bytes > 0) *extra = static_cast<std::byte>(block.zero);
    }
  }
};

// A warp takes eight rows of the file and one chunk at a time, four lanes per row.
template <class Format>
__global__ void __launch_bounds__(32 * warps) tile_kernel(const Packing packing) {
  constexpr tiles::Chunk chunk = tiles::chunk_of(Format::format);
  wait_for_previous();
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const int chunks = (packing.cols + chunk.cols - 1) / chunk.cols;
  const std::int64_t matrix_tiles = tiles::padded_rows(packing.matrix_rows) / tiles::tile_rows;
  for (std::int64_t first = std::int64_t{blockIdx.x} * 8; first < packing.rows.count;
       first += std::int64_t{gridDim.x} * 8) {
    const std::int64_t number = first + lane / 4;
    if (number >= packing.rows.count) return;
    const std::int64_t row = decoder_row(packing.rows.first + number, packing.rows.alternating);
    const int in_matrix = static_cast<int>(row % packing.matrix_rows);
    const std::int64_t tile = row / packing.matrix_rows * matrix_tiles + in_matrix / tiles::tile_rows;
    const std::byte* from = packing.from + number * packing.from_bytes;
    for (int c = static_cast<int>(blockIdx.y) * warps + warp; c < chunks;
         c += static_cast<int>(gridDim.y) * warps) {
      std::byte* to = packing.to + tile * packing.to_bytes + std::int64_t{c} * chunk.bytes;
      Format::pack(packing, {to, in_matrix % tiles::tile_rows, lane % 4, c}, from);
    }
  }
}

template <class Format>
void pack_tiles(const Queue& queue, const Packing& packing) {
  const int chunks = blocks_for(packing.cols, tiles::chunk_of(Format::format).cols);
  const dim3 grid(std::min(blocks_for(packing.rows.count, 8), 4096u), blocks_for(chunks, 2 * warps));
  launch(queue, {.grid = grid, .threads = 32 * warps}, tile_kernel<Format>, packing);
}

// Q6_K: a thread per block.
__global__ void __launch_bounds__(256) split_kernel(const Packing packing) {
  wait_for_previous();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x, blocks = packing.cols / 256;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < packing.rows.count * blocks;
       i += step) {
    const blocks::Q6_K& block = reinterpret_cast<const blocks::Q6_K*>(packing.from)[i];
    const std::int64_t b = i % blocks;
    std::byte* row = packing.to + decoder_row(packing.rows.first + i / blocks, packing.rows.alternating) *
                                      packing.to_bytes;
    for (int k = 0; k < 128; ++k) row[b * 128 + k] = static_cast<std::byte>(block.low[k]);
    std::byte* high = row + blocks * 128;
    for (int k = 0; k < 64; ++k) high[b * 64 + k] = static_cast<std::byte>(block.high[k]);
    std::byte* scales = high + blocks * 64;
    for (int k = 0; k < 16; ++k) scales[b * 16 + k] = static_cast<std::byte>(block.groups[k]);
    reinterpret_cast<std::uint16_t*>(scales + blocks * 16)[b] = block.scale;
  }
}

template <class Word>
__global__ void __launch_bounds__(128)
    place_kernel(Word* to, const Word* from, std::int64_t row_words, const RowRange rows) {
  wait_for_previous();
  for (std::int64_t row = blockIdx.x; row < rows.count; row += gridDim.x) {
    Word* target = to + decoder_row(rows.first + row, rows.alternating) * row_words;
    const Word* source = from + row * row_words;
    for (std::int64_t i = threadIdx.x; i < row_words; i += blockDim.x) target[i] = source[i];
  }
}

template <class Word>
void place(const Queue& queue, std::byte* to, const std::byte* from, std::int64_t row_bytes,
           const RowRange& rows) {
  const dim3 grid(static_cast<unsigned>(std::min<std::int64_t>(rows.count, 4096)));
  launch(queue, {.grid = grid, .threads = 128}, place_kernel<Word>, reinterpret_cast<Word*>(to),
         reinterpret_cast<const Word*>(from), row_bytes / static_cast<std::int64_t>(sizeof(Word)), rows);
}

}  // namespace

void pack_16_bit(const Queue& queue, const Packing& packing) {
  pack_tiles<Pack16Bit>(queue, packing);
}
void pack_q8_0(const Queue& queue, const Packing& packing) {
  pack_tiles<PackQ8_0>(queue, packing);
}
void pack_q4_k(const Queue& queue, const Packing& packing) {
  pack_tiles<PackQ4_K>(queue, packing);
}
void pack_q6_k(const Queue& queue, const Packing& packing) {
  const dim3 grid(std::min(blocks_for(packing.rows.count * (packing.cols / 256), 256), 4096u));
  launch(queue, {.grid = grid, .threads = 256}, split_kernel, packing);
}
void pack_mxfp4(const Queue& queue, const Packing& packing) {
  pack_tiles<PackMxfp4>(queue, packing);
}

void pack_q4_0(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileQ4_0>>(queue, packing);
}
void pack_int4_32(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileInt4_32>>(queue, packing);
}
void pack_int4_64(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileInt4_64>>(queue, packing);
}
void pack_int4_128(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileInt4_128>>(queue, packing);
}
void pack_int8_32(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileInt8_32>>(queue, packing);
}
void pack_int8_64(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileInt8_64>>(queue, packing);
}
void pack_fp8_32(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileFp8_32>>(queue, packing);
}
void pack_fp8_128(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileFp8_128>>(queue, packing);
}
void pack_nvfp4_64(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileNvfp4_64>>(queue, packing);
}
void pack_nf4_64(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileNf4_64>>(queue, packing);
}
void pack_fp4_64(const Queue& queue, const Packing& packing) {
  pack_tiles<PackScaled<TileFp4_64>>(queue, packing);
}

void pack_rows(const Queue& queue, std::byte* to, const std::byte* from, const WeightView& shape,
               const RowRange& rows, std::int32_t* too_large) {
  const Packing packing = {
      .to = to,
      .from = from,
      .from_bytes = static_cast<std::int64_t>(bytes_for(shape.format, static_cast<std::size_t>(shape.cols))),
      .to_bytes = shape.layout == Layout::tiled ? shape.tile_bytes : shape.row_bytes,
      .rows = rows,
      .matrix_rows = shape.rows,
      .cols = shape.cols,
      .too_large = too_large};
  kernels_of(shape.format).pack(queue, packing);
}

void place_rows(const Queue& queue, std::byte* to, const std::byte* from, std::int64_t row_bytes,
                const RowRange& rows) {
  if (rows.count == 0) return;
  if (row_bytes % 16 == 0) return place<uint4>(queue, to, from, row_bytes, rows);
  if (row_bytes % 2 == 0) return place<std::uint16_t>(queue, to, from, row_bytes, rows);
  place<std::uint8_t>(queue, to, from, row_bytes, rows);
}

}  // namespace inferno::cuda
