// Rows of a table by token or by position, and rows of a weight decoded to bf16 for matrix products.
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/kernels/for_layout.cuh"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

struct Table {
  const std::byte* data;
  std::int64_t row_bytes;
  int cols;
};

template <class Layout>
__global__ void embed_kernel(const Layout layout, const Elements out, const Table table,
                             const std::int32_t* rows, float scale, bool adds) {
  wait_for_previous();
  let_next_start();
  const std::byte* row = table.data + rows[blockIdx.x] * table.row_bytes;
  for (int k = 8 * static_cast<int>(threadIdx.x); k < table.cols; k += 8 * static_cast<int>(blockDim.x)) {
    const int count = min(8, table.cols - k);
    float values[8];
    layout.decode(values, row, k, count);
    const std::int64_t at = std::int64_t{blockIdx.x} * table.cols + k;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (i >= count) continue;
      const float value = scale * values[i];
      out.put(at + i, adds ? out.get(at + i) + value : value);
    }
  }
}

// A thread for each run of eight elements. Only weights whose rows are whole runs are expanded.
template <class Layout>
__global__ void __launch_bounds__(256)
    expand_kernel(const Layout layout, uint4* out, const Table table, std::int64_t runs,
                  const std::int32_t* counts, std::int64_t matrix_runs) {
  wait_for_previous();
  let_next_start();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  const int row_runs = table.cols / 8;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < runs; i += step) {
    if (counts != nullptr && counts[i / matrix_runs] == 0) continue;
    float values[8];
    layout.decode(values, table.data + i / row_runs * table.row_bytes, i % row_runs * 8, 8);
    out[i] = make_uint4(packed(values[0], values[1]), packed(values[2], values[3]),
                        packed(values[4], values[5]), packed(values[6], values[7]));
  }
}

void start(const Queue& queue, Matrix out, const WeightView& table, Matrix rows, float scale, bool adds) {
  const unsigned threads = static_cast<unsigned>(std::clamp((out.cols / 8 + 31) / 32 * 32, 32, 512));
  for_layout(table, [&]<class L>(const L& layout) {
    launch(queue, {.grid = dim3(static_cast<unsigned>(out.rows)), .threads = threads}, embed_kernel<L>,
           layout, elements_of(out), Table{table.data, table.row_bytes, table.cols}, integers_of(rows), scale,
           adds);
  });
}

}  // namespace

void embed(const Queue& queue, Matrix out, const WeightView& table, Matrix rows, float scale) {
  start(queue, out, table, rows, scale, false);
}

void add_rows(const Queue& queue, Matrix out, const WeightView& table, Matrix rows) {
  start(queue, out, table, rows, 1.0f, true);
}

void expand(const Queue& queue, std::byte* out, const WeightView& weight, std::int64_t first,
            std::int64_t rows, const std::int32_t* counts) {
  const std::int64_t runs = rows * weight.cols / 8;
  const unsigned most = static_cast<unsigned>(queue.multiprocessors) * 64;
  for_layout(weight, [&]<class L>(const L& layout) {
    launch(queue, {.grid = dim3(std::min(blocks_for(runs, 256), most)), .threads = 256}, expand_kernel<L>,
           layout, reinterpret_cast<uint4*>(out),
           Table{weight.data + first * weight.row_bytes, weight.row_bytes, weight.cols}, runs, counts,
           std::int64_t{weight.rows} * weight.cols / 8);
  });
}

}  // namespace inferno::cuda
