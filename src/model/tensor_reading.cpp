// The second half of tensor_plan.h: bytes from disk, rows put into the decoder's order.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/error.h"
#include "model/tensor_plan.h"
#include "tensor/decode.h"

namespace inferno {
namespace {

// Groups of rows in which two halves take turns, as WeightSource::alternating has them.
int alternating_rows(const PlannedPart& part) {
  if (part.interleaved) return part.rows;  // gate 0, up 0, gate 1, up 1, …
  // Pair 0's two rows, pair 1's two rows, … of each head.
  return part.rotary_heads > 0 ? part.rows / part.rotary_heads : 0;
}

// [cols, rows] to [rows, cols], elements of `size` bytes. Square tiles keep both sides in cache.
void transpose(std::byte* to, const std::byte* from, std::size_t rows, std::size_t cols, std::size_t size) {
  constexpr std::size_t tile = 32;
  for (std::size_t r0 = 0; r0 < rows; r0 += tile) {
    for (std::size_t c0 = 0; c0 < cols; c0 += tile) {
      for (std::size_t r = r0; r < std::min(r0 + tile, rows); ++r) {
        for (std::size_t c = c0; c < std::min(c0 + tile, cols); ++c) {
          std::memcpy(to + (r * cols + c) * size, from + (c * rows + r) * size, size);
        }
      }
    }
  }
}

// Reads rows of a part, whose tensors follow one another.
class PartReader {
 public:
  PartReader(const PlannedPart& part, int cols)
      : tensors_(part.tensors),
        is_transposed_(part.transposed),
        rows_(static_cast<std::uint64_t>(part.rows)),
        cols_(static_cast<std::uint64_t>(cols)),
        element_bytes_(block_bytes(part.tensors.front().format)),
        row_bytes_(bytes_for(part.tensors.front().format, static_cast<std::size_t>(cols))) {
    std::uint64_t bytes = 0;
    for (const StoredTensor& tensor : tensors_) bytes += tensor.bytes;
    expects(bytes == static_cast<std::uint64_t>(std::max(part.experts, 1)) * rows_ * row_bytes_,
            "the planned tensors fill the part");
  }

  void operator()(std::int64_t first, std::span<std::byte> to) const {
    auto row = static_cast<std::uint64_t>(first);
    const std::uint64_t tensor_rows = tensors_.front().bytes / row_bytes_;
    while (!to.empty()) {
      const StoredTensor& tensor = tensors_[row / tensor_rows];
      const std::uint64_t at = row % tensor_rows;
      const std::uint64_t end = is_transposed_ ? at - at % rows_ + rows_ : tensor_rows;
      const std::uint64_t count = std::min<std::uint64_t>(end - at, to.size() / row_bytes_);
      const auto part = to.first(count * row_bytes_);
      if (is_transposed_) {
        read_transposed(tensor, at, count, part);
      } else {
        tensor.read(at * row_bytes_, part);
      }
      to = to.subspan(part.size());
      row += count;
    }
  }

 private:
  // Rows of one matrix that is stored as columns: of each of its stored rows, a stretch.
  void read_transposed(const StoredTensor& tensor, std::uint64_t at, std::uint64_t count,
                       std::span<std::byte> to) const {
    const std::uint64_t matrix = at / rows_ * rows_ * row_bytes_;
    std::vector<std::byte> stored(to.size());
    if (count == rows_) {
      tensor.read(matrix, stored);
    } else {
      const std::size_t stretch = count * element_bytes_;
      for (std::uint64_t c = 0; c < cols_; ++c) {
        tensor.read(matrix + (c * rows_ + at % rows_) * element_bytes_,
                    std::span(stored).subspan(c * stretch, stretch));
      }
    }
    transpose(to.data(), stored.data(), count, cols_, element_bytes_);
  }

  std::vector<StoredTensor> tensors_;
  bool is_transposed_;
  std::uint64_t rows_, cols_, element_bytes_, row_bytes_;
};

}  // namespace

WeightSource source_of(const PlannedPart& part, int cols) {
  return {.format = part.tensors.front().format,
          .count = std::max(part.experts, 1),
          .rows = part.rows,
          .cols = cols,
          .alternating = alternating_rows(part),
          .read = PartReader(part, cols)};
}

std::vector<std::byte> read_part(const PlannedPart& part, int cols) {
  return read_weight(source_of(part, cols));
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
    for (std::size_t expert = 0; expert < experts; ++expert) {
      for (std::size_t row = 0; row < rows; ++row) {
        const auto to =
            static_cast<std::size_t>(decoder_row(static_cast<std::int64_t>(row), alternating_rows(part)));
        out[expert * width + column + to] = values[expert * rows + row];
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
