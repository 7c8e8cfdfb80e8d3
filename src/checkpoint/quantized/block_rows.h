// What the sources of row_source.h share: byte ranges to rows, and the checks of scales and codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/byte_source.h"
#include "tensor/stored_tensor.h"

namespace inferno {

// A matrix of blocks that is made row by row.
class BlockRows : public ByteSource {
 public:
  BlockRows(WeightFormat format, std::int64_t rows, std::int64_t cols);
  std::uint64_t size() const final { return rows_ * row_bytes_; }
  void read(std::uint64_t offset, std::span<std::byte> to) const final;

 protected:
  // Fills `to` with `count` rows of blocks from row `first` on: so few that their codes take some megabytes.
  // Called by several threads at once.
  virtual void make_rows(std::uint64_t first, std::uint64_t count, std::byte* to) const = 0;
  std::uint64_t row_bytes() const { return row_bytes_; }

 private:
  std::uint64_t rows_, row_bytes_, rows_at_once_;
};

// Element i of a block gets `code`, in the order of blocks::nibble_in_groups(); nibbles start as zeros.
inline void put_code(std::uint8_t* nibbles, int i, unsigned code) {
  const int byte = i / 32 * 16 + i % 16;
  nibbles[byte] = static_cast<std::uint8_t>(nibbles[byte] | (i % 32 < 16 ? code : code << 4));
}

// Elements [first, first + count) of a tensor of floats.
std::vector<float> read_numbers(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count);
std::vector<std::byte> read_bytes(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count);
// Elements of a tensor of 32-bit words.
std::vector<std::uint32_t> read_words(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count);

// Error{corrupt} if a scale is not finite; names the module and the file.
void require_finite(std::span<const float> scales, const std::string& origin, const std::string& name);

}  // namespace inferno
