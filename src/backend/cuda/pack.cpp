#include "backend/cuda/pack.h"

#include <fmt/format.h>

#include <algorithm>

#include "backend/cuda/check.h"
#include "base/error.h"

namespace inferno::cuda {
namespace {

constexpr std::size_t max_expanded = std::size_t{512} << 20;

std::int64_t stored_row(WeightFormat format, std::int32_t cols) {
  return static_cast<std::int64_t>(bytes_for(format, static_cast<std::size_t>(cols)));
}

}  // namespace

Packer::Packer(const Queue& queue, DeviceMemory& memory, Staging& staging, bool rearranges)
    : queue_(queue), memory_(memory), staging_(staging), rearranges_(rearranges) {}

void Packer::allocate(Weight& weight, Layout layout) {
  const int elements = block_elements(weight.format);
  if (weight.cols % elements != 0) {
    fail(ErrorKind::unsupported,
         fmt::format("a weight of {} columns cannot be {}: its blocks have {} elements", weight.cols,
                     name_of(weight.format), elements));
  }
  weight.layout = static_cast<std::uint8_t>(layout);
  weight.memory = {};
  weight.memory =
      memory_.allocate(static_cast<std::size_t>(weight.count * view(weight).bytes_between), "weights");
  if (rearranges_ && weight.format != WeightFormat::bf16) {
    const auto one = static_cast<std::size_t>(tiles::padded_rows(weight.rows) / tiles::tile_rows *
                                              tiles::tile_bytes(WeightFormat::bf16, weight.cols));
    const std::size_t all = one * static_cast<std::size_t>(weight.count);
    const std::size_t least = weight.count > 1 ? one : 0;  // an expert is never cut
    expanded_bytes_ = std::max({expanded_bytes_, std::min(all, max_expanded), least});
  }
}

Weight Packer::pack(const HostWeight& source) {
  Weight weight = {source.format, source.count, source.rows, source.cols, {}, 0};
  allocate(weight, layout_for(source.format));
  const auto rows = static_cast<std::size_t>(source.count) * static_cast<std::size_t>(source.rows);
  expects(source.data.size() == rows * bytes_for(source.format, static_cast<std::size_t>(source.cols)),
          "a host weight has as many bytes as its shape says");
  if (layout_for(source.format) != Layout::stored) {
    if (upload_rearranged(weight, source)) return weight;
    allocate(weight, Layout::stored);
  }
  staging_.upload(weight.memory.data(), source.data);
  return weight;
}

// False when an MXFP4 scale is too large for the kernels that read tiles.
bool Packer::upload_rearranged(Weight& weight, const HostWeight& source) {
  const std::int64_t rows = std::int64_t{source.count} * source.rows;
  const std::int64_t stored = stored_row(source.format, source.cols);
  const std::int64_t at_once = std::max<std::int64_t>(
      1, static_cast<std::int64_t>(Staging::piece) / std::max<std::int64_t>(stored, 1));
  const auto room_bytes = static_cast<std::size_t>(std::min(rows, at_once) * stored) + 256;
  if (room_.size() < room_bytes) room_ = memory_.allocate(std::max(room_bytes, Staging::piece), "packing");
  auto* flag = reinterpret_cast<std::int32_t*>(room_.data());
  check(cudaMemsetAsync(flag, 0, sizeof(*flag), queue_.stream));
  const WeightView shape = view(weight);
  for (std::int64_t first = 0; first < rows; first += at_once) {
    const std::int64_t count = std::min(at_once, rows - first);
    staging_.upload(room_.data() + 256, source.data.subspan(static_cast<std::size_t>(first * stored),
                                                            static_cast<std::size_t>(count * stored)));
    pack_rows(queue_, weight.memory.data(), room_.data() + 256, shape, {.first = first, .count = count},
              flag);
  }
  std::int32_t too_large = 0;
  staging_.download(std::as_writable_bytes(std::span(&too_large, 1)), room_.data());
  return too_large == 0;
}

}  // namespace inferno::cuda
