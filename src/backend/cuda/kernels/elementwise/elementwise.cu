// activate and take_rows: memory-bound, one thread for a few elements.
#include "backend/cuda/device/activation.cuh"
#include "backend/cuda/device/elements.cuh"
#include "backend/cuda/kernels/elementwise/elementwise.h"
#include "backend/cuda/kernels/launch.cuh"

namespace inferno::cuda {
namespace {

__global__ void activate_kernel(const Elements out, const Elements in, std::int64_t total, int hidden,
                                const ActivationSpec spec) {
  wait_for_previous();
  let_next_start();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step) {
    if (!spec.gated) {
      out.put(i, activated(in.get(i), 0.0f, spec));
      continue;
    }
    const std::int64_t gate = i / hidden * 2 * hidden + i % hidden;
    out.put(i, activated(in.get(gate), in.get(gate + hidden), spec));
  }
}

__global__ void convert_kernel(const Elements out, const Elements in, std::int64_t total) {
  wait_for_previous();
  let_next_start();
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < total; i += step) {
    out.put(i, in.get(i));
  }
}

__global__ void take_rows_kernel(std::byte* out, const std::byte* in, const std::int32_t* rows,
                                 std::int64_t row_bytes) {
  wait_for_previous();
  let_next_start();
  const std::byte* from = in + rows[blockIdx.x] * row_bytes;
  std::byte* to = out + std::int64_t{blockIdx.x} * row_bytes;
  for (std::int64_t i = 2 * threadIdx.x; i < row_bytes; i += 2 * blockDim.x) {
    *reinterpret_cast<std::uint16_t*>(to + i) = *reinterpret_cast<const std::uint16_t*>(from + i);
  }
}

}  // namespace

void activate(const Queue& queue, Matrix out, Matrix in, const ActivationSpec& activation) {
  ActivationSpec spec = activation;
  spec.gated = in.cols == 2 * out.cols;
  const std::int64_t total = std::int64_t{out.rows} * out.cols;
  const unsigned max_blocks = static_cast<unsigned>(queue.multiprocessors) * 16;
  launch(queue, {.grid = dim3(std::min(blocks_for(total, 256), max_blocks)), .threads = 256}, activate_kernel,
         elements_of(out), elements_of(in), total, out.cols, spec);
}

void convert(const Queue& queue, Matrix out, Matrix in) {
  const std::int64_t total = std::int64_t{out.rows} * out.cols;
  const unsigned max_blocks = static_cast<unsigned>(queue.multiprocessors) * 16;
  launch(queue, {.grid = dim3(std::min(blocks_for(total, 256), max_blocks)), .threads = 256}, convert_kernel,
         elements_of(out), elements_of(in), total);
}

void take_rows(const Queue& queue, Matrix out, Matrix in, Matrix rows) {
  launch(queue, {.grid = dim3(static_cast<unsigned>(out.rows)), .threads = 256}, take_rows_kernel, out.data,
         in.data, integers_of(rows), static_cast<std::int64_t>(in.row_bytes()));
}

}  // namespace inferno::cuda
