// A weight that is still in its file: the argument of Backend::load(), so that each backend decides how the
// bytes are read and transferred.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "tensor/format.h"

namespace inferno {

struct WeightSource {
  WeightFormat format = WeightFormat::f32;
  std::int32_t count = 1;        // matrices of the same shape: experts
  std::int32_t rows = 0;         // output features
  std::int32_t cols = 0;         // input features, a multiple of block_elements(format)
  std::int32_t alternating = 0;  // > 0: rows per interleaved group, see decoder_row()
  // [count, cols]: stored column c of a matrix multiplies input column_order[c]. Empty: column c. Checkpoints
  // quantized in order of activation have it (act-order), because blocks need the columns of a group side by
  // side.
  std::vector<std::int32_t> column_order = {};
  // Fills `to` with whole rows in stored order, starting at row `first` of all count * rows. Several threads
  // may call it at once. Throws what reading a file throws.
  std::function<void(std::int64_t first, std::span<std::byte> to)> read;

  std::int64_t all_rows() const { return std::int64_t{count} * rows; }
  std::size_t row_bytes() const { return bytes_for(format, static_cast<std::size_t>(cols)); }
  std::size_t bytes() const { return static_cast<std::size_t>(all_rows()) * row_bytes(); }
};

// The index at which the decoder expects stored row `row`. Files interleave the two halves of a group (gate
// 0, up 0, gate 1, ...); the decoder expects one half after the other.
constexpr std::int64_t decoder_row(std::int64_t row, std::int32_t alternating) {
  if (alternating == 0) return row;
  const std::int64_t in_group = row % alternating;
  return row - in_group + in_group / 2 + in_group % 2 * (alternating / 2);
}

// All rows of a weight, from stored order to the decoder's.
inline std::vector<std::byte> in_decoder_order(const WeightSource& source, std::vector<std::byte> stored) {
  if (source.alternating == 0) return stored;
  const std::size_t row_bytes = source.row_bytes();
  std::vector<std::byte> ordered(stored.size());
  for (std::int64_t row = 0; row < source.all_rows(); ++row) {
    std::memcpy(ordered.data() + static_cast<std::size_t>(decoder_row(row, source.alternating)) * row_bytes,
                stored.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  }
  return ordered;
}

// The whole weight, rows in the decoder's order.
inline std::vector<std::byte> read_weight(const WeightSource& source) {
  std::vector<std::byte> stored(source.bytes());
  source.read(0, stored);
  return in_decoder_order(source, std::move(stored));
}

}  // namespace inferno
