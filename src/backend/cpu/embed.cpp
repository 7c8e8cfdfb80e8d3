// Rows of a table by token or by position.
#include <algorithm>

#include "backend/cpu/operations.h"
#include "backend/cpu/views.h"
#include "tensor/decode.h"

namespace inferno::cpu {
namespace {

void read_row(std::span<float> out, const Weight& table, std::int32_t row) {
  const std::size_t bytes = bytes_for(table.format, out.size());
  const std::byte* blocks = table.memory.data() + static_cast<std::size_t>(row) * bytes;
  decode(table.format, {blocks, bytes}, out);
}

}  // namespace

void embed(const Compute& compute, Matrix out, const Weight& table, Matrix tokens, float scale) {
  const auto width = static_cast<std::size_t>(out.cols);
  compute.pool.parallel_for(out.rows, grain_for(compute.pool, out.rows, out.cols), [&](const auto& range) {
    for (auto r = range.begin; r < range.end; ++r) {
      const std::span<float> row(floats(out, r), width);
      read_row(row, table, *integers(tokens, r));
      if (scale != 1.0f) std::ranges::for_each(row, [scale](float& x) { x *= scale; });
    }
  });
}

void add_positions(const Compute& compute, Matrix x, const Weight& table, Matrix positions) {
  const auto width = static_cast<std::size_t>(x.cols);
  compute.pool.parallel_for(x.rows, grain_for(compute.pool, x.rows, x.cols), [&](const auto& range) {
    float* position = compute.scratch.own(range.worker, width);
    for (auto r = range.begin; r < range.end; ++r) {
      read_row({position, width}, table, *integers(positions, r));
      float* row = floats(x, r);
      for (std::size_t c = 0; c < width; ++c) row[c] += position[c];
    }
  });
}

}  // namespace inferno::cpu
