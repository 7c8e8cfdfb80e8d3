#include "checkpoint/safetensors/mxfp4_pair.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/checked.h"
#include "base/error.h"
#include "tensor/blocks/quants_32.h"

namespace inferno {
namespace {

constexpr std::size_t code_bytes = 16;
constexpr std::size_t block_size = sizeof(blocks::Mxfp4);
// Codes and scales of one step fit into the L2 cache.
constexpr std::size_t blocks_per_step = 8192;

constexpr std::uint64_t low_nibbles = 0x0F0F0F0F0F0F0F0Full;

// Inserts a zero byte after each of the four bytes.
constexpr std::uint64_t spread(std::uint64_t four) {
  four = (four | (four << 16)) & 0x0000FFFF0000FFFFull;
  return (four | (four << 8)) & 0x00FF00FF00FF00FFull;
}

// Byte j holds elements 2j and 2j + 1 in Hugging Face's layout, and j and j + 16 in GGUF's. So GGUF's bytes
// 2j and 2j + 1 consist of the low and the high nibbles of Hugging Face's bytes j and j + 8, here eight at a
// time.
void reorder(const std::byte* from, std::byte* to) {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  std::memcpy(&first, from, sizeof(first));
  std::memcpy(&second, from + sizeof(first), sizeof(second));
  const std::uint64_t even = (first & low_nibbles) | ((second & low_nibbles) << 4);
  const std::uint64_t odd = ((first >> 4) & low_nibbles) | (second & ~low_nibbles);
  const std::array<std::uint64_t, 2> result = {spread(even & 0xFFFFFFFFu) | (spread(odd & 0xFFFFFFFFu) << 8),
                                               spread(even >> 32) | (spread(odd >> 32) << 8)};
  std::memcpy(to, result.data(), sizeof(result));
}

class Mxfp4Pair final : public ByteSource {
 public:
  Mxfp4Pair(StoredTensor codes, StoredTensor scales) : codes_(std::move(codes)), scales_(std::move(scales)) {
    expects(codes_.bytes / code_bytes == scales_.bytes && codes_.bytes % code_bytes == 0,
            "an MXFP4 pair has one scale per block");
  }

  std::uint64_t size() const override { return scales_.bytes * block_size; }

  void read(std::uint64_t offset, std::span<std::byte> to) const override {
    const auto end = checked::add(offset, to.size());
    if (!end || *end > size()) {
      fail(ErrorKind::corrupt, "an MXFP4 tensor was read beyond its end");
    }
    const std::size_t skip = offset % block_size;
    std::uint64_t block = offset / block_size;
    if (skip != 0 && !to.empty()) {
      const std::size_t count = std::min(block_size - skip, to.size());
      read_part(block++, skip, to.first(count));
      to = to.subspan(count);
    }
    const std::size_t whole = to.size() / block_size;
    read_blocks(block, whole, to.data());
    to = to.subspan(whole * block_size);
    if (!to.empty()) read_part(block + whole, 0, to);
  }

  void check_unchanged() const override {
    codes_.source->check_unchanged();
    scales_.source->check_unchanged();
  }

 private:
  void read_blocks(std::uint64_t first, std::size_t count, std::byte* to) const {
    std::vector<std::byte> codes(std::min(count, blocks_per_step) * code_bytes);
    std::vector<std::byte> scales(std::min(count, blocks_per_step));
    for (std::size_t done = 0; done < count; done += blocks_per_step) {
      const std::size_t step = std::min(count - done, blocks_per_step);
      codes_.read((first + done) * code_bytes, std::span(codes).first(step * code_bytes));
      scales_.read(first + done, std::span(scales).first(step));
      for (std::size_t i = 0; i < step; ++i, to += block_size) {
        *to = scales[i];
        reorder(codes.data() + i * code_bytes, to + 1);
      }
    }
  }

  // Fills `to` from byte `skip` of one block.
  void read_part(std::uint64_t block, std::size_t skip, std::span<std::byte> to) const {
    std::array<std::byte, block_size> whole = {};
    read_blocks(block, 1, whole.data());
    std::memcpy(to.data(), whole.data() + skip, to.size());
  }

  StoredTensor codes_;   // [blocks, 16]
  StoredTensor scales_;  // [blocks]
};

}  // namespace

std::shared_ptr<const ByteSource> interleave_mxfp4(StoredTensor blocks, StoredTensor scales) {
  return std::make_shared<Mxfp4Pair>(std::move(blocks), std::move(scales));
}

}  // namespace inferno
