// The second half of tensor_plan.h: bytes from disk, rows put into the decoder's order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "model/tensor_plan.h"
#include "tensor/decode.h"

namespace inferno {
namespace {

// Where each of the decoder's rows is found in the file; empty when the order is the same.
std::vector<int> row_order(const PlannedPart& part) {
  std::vector<int> order;
  const int rows = part.rows;
  if (part.interleaved) {  // gate 0, up 0, gate 1, up 1, …
    for (int row = 0; row < rows; ++row) {
      order.push_back(row < rows / 2 ? 2 * row : 2 * (row - rows / 2) + 1);
    }
  }
  if (part.rotary_heads > 0) {  // pair 0's two rows, pair 1's two rows, … of each head
    const int head_dim = rows / part.rotary_heads;
    for (int row = 0; row < rows; ++row) {
      const int head = row / head_dim, at = row % head_dim;
      const int half = head_dim / 2;
      order.push_back(head * head_dim + (at < half ? 2 * at : 2 * (at - half) + 1));
    }
  }
  return order;
}

void reorder(std::span<std::byte> matrix, const std::vector<int>& order, std::size_t row_bytes) {
  const std::vector<std::byte> source(matrix.begin(), matrix.end());
  for (std::size_t row = 0; row < order.size(); ++row) {
    std::memcpy(matrix.data() + row * row_bytes,
                source.data() + static_cast<std::size_t>(order[row]) * row_bytes, row_bytes);
  }
}

// [cols, rows] to [rows, cols], elements of `size` bytes. Square tiles keep both sides in cache.
void transpose(std::span<std::byte> matrix, std::size_t rows, std::size_t cols, std::size_t size) {
  const std::vector<std::byte> source(matrix.begin(), matrix.end());
  constexpr std::size_t tile = 32;
  for (std::size_t r0 = 0; r0 < rows; r0 += tile) {
    for (std::size_t c0 = 0; c0 < cols; c0 += tile) {
      for (std::size_t r = r0; r < std::min(r0 + tile, rows); ++r) {
        for (std::size_t c = c0; c < std::min(c0 + tile, cols); ++c) {
          std::memcpy(matrix.data() + (r * cols + c) * size, source.data() + (c * rows + r) * size, size);
        }
      }
    }
  }
}

}  // namespace

std::vector<std::byte> read_part(const PlannedPart& part, int cols) {
  const WeightFormat format = part.tensors.front().format;
  const std::size_t row_bytes = bytes_for(format, static_cast<std::size_t>(cols));
  const std::size_t matrix_bytes = row_bytes * static_cast<std::size_t>(part.rows);
  const auto matrices = static_cast<std::size_t>(std::max(part.experts, 1));
  std::vector<std::byte> bytes(matrix_bytes * matrices);
  std::size_t at = 0;
  for (const StoredTensor& tensor : part.tensors) {
    tensor.read(0, std::span(bytes).subspan(at, tensor.bytes));
    at += tensor.bytes;
  }
  expects(at == bytes.size(), "the planned tensors fill the part");
  const std::vector<int> order = row_order(part);
  for (std::size_t matrix = 0; matrix < matrices; ++matrix) {
    const auto one = std::span(bytes).subspan(matrix * matrix_bytes, matrix_bytes);
    if (part.transposed) {
      transpose(one, static_cast<std::size_t>(part.rows), static_cast<std::size_t>(cols),
                block_bytes(format));
    }
    if (!order.empty()) reorder(one, order, row_bytes);
  }
  return bytes;
}

std::vector<float> read_biases(const PlannedSlot& slot) {
  const auto experts = static_cast<std::size_t>(std::max(slot.request.experts, 1));
  std::size_t width = 0;
  for (const PlannedPart& part : slot.parts) width += static_cast<std::size_t>(part.rows);
  std::vector<float> out(experts * width);
  std::size_t column = 0;
  for (const PlannedPart& part : slot.parts) {
    std::vector<float> values;
    for (const StoredTensor& bias : part.biases) {
      const std::vector<float> one = read_floats(bias);
      values.insert(values.end(), one.begin(), one.end());
    }
    const auto rows = static_cast<std::size_t>(part.rows);
    expects(values.size() == experts * rows, "the planned biases fill the part");
    const std::vector<int> order = row_order(part);
    for (std::size_t expert = 0; expert < experts; ++expert) {
      for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t from = order.empty() ? row : static_cast<std::size_t>(order[row]);
        out[expert * width + column + row] = values[expert * rows + from];
      }
    }
    column += rows;
  }
  return out;
}

std::vector<float> read_floats(const StoredTensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  tensor.read(0, bytes);
  const auto elements = static_cast<std::size_t>(std::accumulate(
      tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>()));
  std::vector<float> out(elements);
  decode(tensor.format, bytes, out);
  return out;
}

}  // namespace inferno
