// Rows of a table by token or by position, and rows of a weight decoded to bf16 for matrix products.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/kernels/elementwise/elementwise.h"
#include "backend/cuda/kernels/for_layout.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

template <class Reader>
__global__ void embed_kernel(const Reader table, const Elements out, int cols, const std::int32_t* rows,
                             float scale, bool adds) {
  wait_for_previous();
  let_next_start();
  const std::int64_t row = rows[blockIdx.x];
  for (int k = 8 * static_cast<int>(threadIdx.x); k < cols; k += 8 * static_cast<int>(blockDim.x)) {
    const int count = min(8, cols - k);
    float values[8];
    table.decode(values, row, k, count);
    const std::int64_t at = std::int64_t{blockIdx.x} * cols + k;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i >= count) continue;
      const float value = scale * values[i];
      out.put(at + i, adds ? out.get(at + i) + value : value);
    }
  }
}

struct Expansion {
  std::byte* out;
  TileRange tiles;
  int matrix_tiles, rows, rows_between, cols;
  const std::int32_t *counts, *column_order;
};

// Decodes tiles of a weight to bf16 tiles: a block per tile, a thread per 16 bytes. Columns and rows that the
// weight lacks become zeros, and columns get the order of the input. Requires a multiple of eight columns.
template <class Reader>
__global__ void __launch_bounds__(256) expand_kernel(const Reader weight, const Expansion call) {
  constexpr tiles::Chunk chunk = tiles::chunk_of(WeightFormat::bf16);
  constexpr int chunk_runs = chunk.bytes / 16;
  wait_for_previous();
  let_next_start();
  const int runs = (call.cols + chunk.cols - 1) / chunk.cols * chunk_runs;
  for (std::int64_t i = blockIdx.x; i < call.tiles.count; i += gridDim.x) {
    if (call.counts != nullptr && call.counts[i / call.matrix_tiles] == 0) continue;
    const std::int64_t matrix = (call.tiles.first + i) / call.matrix_tiles;
    const int first = static_cast<int>((call.tiles.first + i) % call.matrix_tiles) * tiles::tile_rows;
    auto* to = reinterpret_cast<uint4*>(call.out) + i * runs;
    for (int run = static_cast<int>(threadIdx.x); run < runs; run += static_cast<int>(blockDim.x)) {
      const int g = run % 32 / 4, octet = run % chunk_runs / 32 * 4 + (run % 4 ^ g / 2 % 4);
      const int k = run / chunk_runs * chunk.cols + 8 * octet;
      float values[8] = {};
      if (first + g < call.rows && k < call.cols) {
        weight.decode(values, matrix * call.rows_between + first + g, k, 8);
      }
      if (call.column_order != nullptr && k < call.cols) {
        const std::int32_t* columns = call.column_order + matrix * call.cols + k;
#pragma unroll
        for (int j = 0; j < 8; ++j) {
          const int column = columns[j], in_chunk = column % chunk.cols;
          auto* place = reinterpret_cast<std::byte*>(to) + std::int64_t{column / chunk.cols} * chunk.bytes +
                        tiles::run_16_bit(g, in_chunk / 8) + in_chunk % 8 * 2;
          *reinterpret_cast<__nv_bfloat16*>(place) = __float2bfloat16_rn(values[j]);
        }
        continue;
      }
      to[run] = make_uint4(pack_bf16x2(values[0], values[1]), pack_bf16x2(values[2], values[3]),
                           pack_bf16x2(values[4], values[5]), pack_bf16x2(values[6], values[7]));
    }
  }
}

void start(const Queue& queue, Matrix out, const WeightView& table, Matrix rows, float scale, bool adds) {
  const unsigned threads = static_cast<unsigned>(std::clamp((out.cols / 8 + 31) / 32 * 32, 32, 512));
  for_layout(table, [&]<class R>(const R& reader) {
    launch(queue, {.grid = dim3(static_cast<unsigned>(out.rows)), .threads = threads}, embed_kernel<R>,
           reader, elements_of(out), table.cols, integers_of(rows), scale, adds);
  });
}

}  // namespace

void embed(const Queue& queue, Matrix out, const WeightView& table, Matrix rows, float scale) {
  start(queue, out, table, rows, scale, false);
}

void add_rows(const Queue& queue, Matrix out, const WeightView& table, Matrix rows) {
  start(queue, out, table, rows, 1.0f, true);
}

void expand(const Queue& queue, std::byte* out, const WeightView& weight, const TileRange& tiles,
            const std::int32_t* counts) {
  const Expansion call = {.out = out,
                          .tiles = tiles,
                          .matrix_tiles = (weight.rows + tiles::tile_rows - 1) / tiles::tile_rows,
                          .rows = weight.rows,
                          .rows_between = weight.rows_between,
                          .cols = weight.cols,
                          .counts = counts,
                          .column_order = weight.column_order};
  const auto max_blocks = std::int64_t{queue.multiprocessors} * 64;
  for_layout(weight, [&]<class R>(const R& reader) {
    launch(queue, {.grid = dim3(static_cast<unsigned>(std::min(tiles.count, max_blocks))), .threads = 256},
           expand_kernel<R>, reader, call);
  });
}

}  // namespace inferno::cuda
