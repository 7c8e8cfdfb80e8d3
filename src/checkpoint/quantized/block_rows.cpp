#include "checkpoint/quantized/block_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/checked.h"
#include "base/error.h"
#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::uint64_t max_codes = 8u << 20;  // of rows that are made together

}  // namespace

BlockRows::BlockRows(WeightFormat format, std::int64_t rows, std::int64_t cols)
    : rows_(static_cast<std::uint64_t>(rows)),
      row_bytes_(bytes_for(format, static_cast<std::size_t>(cols))),
      rows_at_once_(std::max<std::uint64_t>(
          max_codes / std::max<std::uint64_t>(static_cast<std::uint64_t>(cols), 1), 1)) {}

void BlockRows::read(std::uint64_t offset, std::span<std::byte> to) const {
  const auto end = checked::add(offset, to.size());
  if (!end || *end > size()) fail(ErrorKind::corrupt, "a quantized tensor was read beyond its end");
  std::vector<std::byte> part;
  while (!to.empty()) {
    const std::uint64_t row = offset / row_bytes_, skip = offset % row_bytes_;
    std::uint64_t bytes = 0;
    if (skip == 0 && to.size() >= row_bytes_) {
      const std::uint64_t count = std::min(to.size() / row_bytes_, rows_at_once_);
      make_rows(row, count, to.data());
      bytes = count * row_bytes_;
    } else {
      part.resize(row_bytes_);
      make_rows(row, 1, part.data());
      bytes = std::min<std::uint64_t>(row_bytes_ - skip, to.size());
      std::memcpy(to.data(), part.data() + skip, bytes);
    }
    offset += bytes;
    to = to.subspan(bytes);
  }
}

std::vector<std::byte> read_bytes(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count) {
  std::vector<std::byte> bytes(count);
  tensor.read(first, bytes);
  return bytes;
}

std::vector<float> read_numbers(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count) {
  const std::size_t size = block_bytes(tensor.format);
  const std::vector<std::byte> bytes = read_bytes(tensor, first * size, count * size);
  std::vector<float> numbers(count);
  decode(tensor.format, bytes, numbers);
  return numbers;
}

std::vector<std::uint32_t> read_words(const StoredTensor& tensor, std::uint64_t first, std::uint64_t count) {
  std::vector<std::uint32_t> words(count);
  tensor.read(first * sizeof(std::uint32_t), std::as_writable_bytes(std::span(words)));
  return words;
}

void require_finite(std::span<const float> scales, const std::string& origin, const std::string& name) {
  const auto bad = std::ranges::find_if(scales, [](float scale) { return !std::isfinite(scale); });
  if (bad == scales.end()) return;
  fail(ErrorKind::corrupt,
       fmt::format("{}: {} has a scale that is {}", origin, quote(name),
                   std::isnan(*bad) ? "not a number" : "infinite"),
       {.why = {}, .next = "download the model again, or use another checkpoint of it"});
}

}  // namespace inferno
