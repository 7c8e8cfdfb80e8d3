// Rows of a table by token or by position.
#include <algorithm>
#include <vector>

#include "backend/cpu/operations.h"
#include "backend/cpu/panels.h"
#include "backend/cpu/views.h"
#include "tensor/decode.h"

namespace inferno::cpu {
namespace {

// The stored bytes of a row, or its lane of the panel it was packed into.
void read_row(const Compute& compute, int worker, std::span<float> out, const Weight& table,
              std::int32_t row) {
  const PanelShape shape = panel_shape(table.format, table.rows, table.cols);
  if (compute.kernels == nullptr || shape.block_bytes == 0) {
    const std::size_t bytes = bytes_for(table.format, out.size());
    const std::byte* blocks = table.memory.data() + static_cast<std::size_t>(row) * bytes;
    decode(table.format, {blocks, bytes}, out);
    return;
  }
  const auto columns = static_cast<std::size_t>(shape.block_columns);
  float* values = compute.scratch.own(worker, columns * panel_rows);
  const std::byte* block =
      table.memory.data() + static_cast<std::size_t>(row / panel_rows) * shape.panel_bytes();
  for (std::size_t first = 0; first < out.size(); first += columns, block += shape.block_bytes) {
    compute.kernels->expand_block(table.format, block, values);
    for (std::size_t c = 0; c < std::min(columns, out.size() - first); ++c) {
      out[first + c] = values[c * panel_rows + static_cast<std::size_t>(row % panel_rows)];
    }
  }
}

}  // namespace

void embed(const Compute& compute, Matrix out, const Weight& table, Matrix tokens, float scale) {
  const auto width = static_cast<std::size_t>(out.cols);
  compute.pool.parallel_for(out.rows, grain_for(compute.pool, out.rows, out.cols), [&](const auto& range) {
    for (auto r = range.begin; r < range.end; ++r) {
      const std::span<float> row(floats(out, r), width);
      read_row(compute, range.worker, row, table, *integers(tokens, r));
      if (scale != 1.0f) std::ranges::for_each(row, [scale](float& x) { x *= scale; });
    }
  });
}

void add_positions(const Compute& compute, Matrix x, const Weight& table, Matrix positions) {
  const auto width = static_cast<std::size_t>(x.cols);
  compute.pool.parallel_for(x.rows, grain_for(compute.pool, x.rows, x.cols), [&](const auto& range) {
    std::vector<float> position(width);
    for (auto r = range.begin; r < range.end; ++r) {
      read_row(compute, range.worker, position, table, *integers(positions, r));
      float* row = floats(x, r);
      for (std::size_t c = 0; c < width; ++c) row[c] += position[c];
    }
  });
}

}  // namespace inferno::cpu
