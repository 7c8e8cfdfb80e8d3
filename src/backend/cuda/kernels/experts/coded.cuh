// What the products of MXFP4 experts on Hopper share: their arguments, the order of the tokens' columns, and
// how blocks take tiles.
#pragma once

#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/device/layouts.cuh"
#include "backend/cuda/kernels/experts/coded_few.h"
#include "backend/cuda/tensor_map.h"

namespace inferno::cuda::coded {

constexpr tiles::Chunk chunk = tiles::chunk_of(WeightFormat::mxfp4);
constexpr int chunk_bytes = chunk.bytes, tile_k = chunk.cols;  // a stage has one chunk of every weight tile
static_assert(tile_k == coded_depth);

// The permuted position of a column within 64: lane t has columns 16 t to 16 t + 15, four of them for each
// step.
__device__ constexpr int place_of(int column) {
  const int t = column / 16, step = column / 4 % 4, second = column / 2 % 2;
  return 16 * step + 8 * second + 2 * t + column % 2;
}
static_assert(Mxfp4Fragments::element(1, 0) == 16 && Mxfp4Fragments::element(0, 1) == 8);

struct Arguments {
  CUtensorMap weight_map;  // [tiles of all experts, chunks, bytes of a chunk]
  CUtensorMap up_map;      // up rows if `weight_map` has gate rows, otherwise the same rows
  CUtensorMap token_map;   // [places, columns]
  std::byte* out;
  const float* factors;  // of each place; null: 1
  const float* bias;
  std::int64_t bias_stride;
  int tiles_between;  // tiles from one expert to the next
  Gate gate;
  int rows, cols, out_cols;
  int pairs;  // pairs of weight tiles that a tile of the product has
  const std::int32_t *tile_expert, *tile_first, *tile_rows;
  int tiles;

  __device__ float bias_at(int expert, int row) const {
    return bias == nullptr ? 0.0f : __ldg(bias + expert * bias_stride + row);
  }
};

// Places [first, first + tokens) of an expert, and the pairs of weight tiles from first_pair on.
struct Tile {
  int expert, first, tokens, first_pair;
};

// All rows of a tile of places follow each other, so that concurrent blocks read the same tokens and experts.
// The tables have the same addresses in every layer and may be read before the wait: past L1, which may hold
// the layer before.
struct TileScheduler {
  int row_tiles, total = 0;

  // Called by all threads together.
  __device__ TileScheduler(const Arguments& call, int pairs_of_expert)
      : row_tiles((pairs_of_expert + call.pairs - 1) / call.pairs) {
    const int threads = static_cast<int>(blockDim.x);
    int used = 0;
    for (int first = 0; first < call.tiles; first += threads) {
      const int index = first + static_cast<int>(threadIdx.x);
      used += __syncthreads_count(index < call.tiles && __ldcg(call.tile_expert + index) >= 0);
    }
    total = used * row_tiles;
  }
  __device__ Tile tile(const Arguments& call, int index) const {
    const int place = index / row_tiles;
    return {__ldcg(call.tile_expert + place), __ldcg(call.tile_first + place), __ldcg(call.tile_rows + place),
            index % row_tiles * call.pairs};
  }
};

// The weights that one copy brings: chunks of the same columns of consecutive tiles, or of every other tile.
struct WeightBox {
  int tiles, chunks = 1, every = 1;
};
// From the first tile on; the number of tiles between experts must be a multiple of `every`.
inline CUtensorMap map_weights(const WeightView& weight, const std::byte* from, int rows,
                               const WeightBox& box) {
  const auto tile = static_cast<cuuint64_t>(weight.tile_bytes);
  const int between = weight.rows_between / tiles::tile_rows;
  const int all = (weight.count - 1) * between + (rows + tiles::tile_rows - 1) / tiles::tile_rows;
  return tensor_map(
      from,
      {.type = CU_TENSOR_MAP_DATA_TYPE_UINT32,
       .rank = 3,
       .sizes = {chunk_bytes / 4, tile / chunk_bytes, static_cast<cuuint64_t>(all / box.every)},
       .strides = {chunk_bytes, tile * static_cast<cuuint64_t>(box.every)},
       .box = {chunk_bytes / 4, static_cast<cuuint32_t>(box.chunks), static_cast<cuuint32_t>(box.tiles)}});
}

// What both kernels are given; the caller adds the maps and factors.
template <class Product>
Arguments arguments_of(const Product& product, const WeightView& weight, int rows, int pairs,
                       const Gate& gate) {
  return {.weight_map = {},
          .up_map = {},
          .token_map = {},
          .out = product.out.data,
          .factors = nullptr,
          .bias = product.bias,
          .bias_stride = product.bias_stride,
          .tiles_between = static_cast<int>(weight.rows_between / tiles::tile_rows),
          .gate = gate,
          .rows = rows,
          .cols = weight.cols,
          .out_cols = product.out.cols,
          .pairs = pairs,
          .tile_expert = product.sorted->tile_expert,
          .tile_first = product.sorted->tile_first,
          .tile_rows = product.sorted->tile_rows,
          .tiles = product.tiles};
}

}  // namespace inferno::cuda::coded
