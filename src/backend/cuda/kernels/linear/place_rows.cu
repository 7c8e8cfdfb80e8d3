// Rows whose bytes stay as they are stored, put into the decoder's order: a block for each row. Bound by
// memory, and a thousandth of the time that the bus takes for the same bytes.
#include "backend/cuda/kernels/launch.cuh"
#include "backend/cuda/kernels/linear/weights.h"

namespace inferno::cuda {
namespace {

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

void place_rows(const Queue& queue, std::byte* to, const std::byte* from, std::int64_t row_bytes,
                const RowRange& rows) {
  if (rows.count == 0) return;
  if (row_bytes % 16 == 0) return place<uint4>(queue, to, from, row_bytes, rows);
  if (row_bytes % 2 == 0) return place<std::uint16_t>(queue, to, from, row_bytes, rows);
  place<std::uint8_t>(queue, to, from, row_bytes, rows);
}

}  // namespace inferno::cuda
