#include "backend/weight_source.h"

#include <cstring>

namespace inferno {

std::vector<std::byte> read_weight(const WeightSource& source) {
  std::vector<std::byte> stored(source.bytes());
  source.read(0, stored);
  if (source.alternating == 0) return stored;
  const std::size_t row_bytes = source.row_bytes();
  std::vector<std::byte> ordered(stored.size());
  for (std::int64_t row = 0; row < source.all_rows(); ++row) {
    std::memcpy(ordered.data() + static_cast<std::size_t>(decoder_row(row, source.alternating)) * row_bytes,
                stored.data() + static_cast<std::size_t>(row) * row_bytes, row_bytes);
  }
  return ordered;
}

}  // namespace inferno
