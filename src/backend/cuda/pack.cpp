#include "backend/cuda/pack.h"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "backend/cuda/check.h"
#include "backend/upload_ring.h"
#include "base/error.h"
#include "base/thread_pool.h"

namespace inferno::cuda {
namespace {

constexpr std::size_t max_expanded = std::size_t{512} << 20;

std::int64_t stored_row(WeightFormat format, std::int32_t cols) {
  return static_cast<std::int64_t>(bytes_for(format, static_cast<std::size_t>(cols)));
}

// Larger pieces are no faster, and smaller ones spend their time in calls.
constexpr std::size_t piece_bytes = std::size_t{4} << 20;
// More readers only share the memory's bandwidth.
constexpr int max_threads = 16;
// Besides one for each reader: in flight to the device, or waiting for it.
constexpr int slots_under_way = 4;

int reader_count(int wanted) {
  if (wanted > 0) return wanted;
  // Reading waits for memory, so both threads of a core are of use.
  const int cpus = static_cast<int>(std::thread::hardware_concurrency());
  return std::clamp(std::min(cpus, 2 * usable_cores()), 1, max_threads);
}

class Pinned {
 public:
  explicit Pinned(std::size_t bytes) : bytes_(bytes) {
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, bytes, cudaHostAllocDefault));
    memory_ = static_cast<std::byte*>(memory);
  }
  ~Pinned() { cudaFreeHost(memory_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  std::span<std::byte> bytes() const { return {memory_, bytes_}; }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_;
};

class Event {
 public:
  Event() { check(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t get() const { return event_; }

 private:
  cudaEvent_t event_ = nullptr;
};

// Everything is queued on one stream: the copy of a piece, then the kernel that puts its rows in place.
class CudaRing final : public RingDevice {
 public:
  CudaRing(const Queue& queue, DeviceMemory& memory, std::span<Weight> to, std::span<const WeightSource> from,
           int slots, std::size_t slot_bytes)
      : queue_(queue),
        to_(to),
        from_(from),
        slot_bytes_(slot_bytes),
        pinned_(static_cast<std::size_t>(slots) * slot_bytes),
        room_(memory.allocate(slot_bytes, "packing")),
        flags_(memory.allocate(to.size() * sizeof(std::int32_t), "packing")),
        sent_(static_cast<std::size_t>(slots)) {}
  // Copies and kernels may still use the memory that is freed here.
  ~CudaRing() override { cudaStreamSynchronize(queue_.stream); }

  int slots() const override { return static_cast<int>(sent_.size()); }
  std::span<std::byte> slot(int index) override {
    return pinned_.bytes().subspan(static_cast<std::size_t>(index) * slot_bytes_, slot_bytes_);
  }
  void wait(int slot) override { check(cudaEventSynchronize(sent_[static_cast<std::size_t>(slot)].get())); }

  void send(int slot, const Piece& piece) override {
    const Weight& weight = to_[piece.weight];
    const WeightView shape = view(weight);
    const RowRange rows = {piece.first, piece.rows, from_[piece.weight].alternating};
    const bool stays = shape.layout == Layout::stored && rows.alternating == 0;
    std::byte* target = stays ? weight.memory.data() + piece.first * shape.row_bytes : room_.data();
    check(
        cudaMemcpyAsync(target, this->slot(slot).data(), piece.bytes, cudaMemcpyHostToDevice, queue_.stream));
    check(cudaEventRecord(sent_[static_cast<std::size_t>(slot)].get(), queue_.stream));
    if (stays) return;
    if (shape.layout == Layout::stored) {
      place_rows(queue_, weight.memory.data(), room_.data(), shape.row_bytes, rows);
    } else {
      auto* flag = reinterpret_cast<std::int32_t*>(flags_.data()) + piece.weight;
      pack_rows(queue_, weight.memory.data(), room_.data(), shape, rows, flag);
    }
  }

  // The weights with an MXFP4 scale that is too large for Layout::tiled. Waits for everything queued.
  std::vector<std::size_t> too_large() const {
    std::vector<std::int32_t> flags(to_.size());
    check(cudaMemcpyAsync(flags.data(), flags_.data(), flags_.size(), cudaMemcpyDeviceToHost, queue_.stream));
    check(cudaStreamSynchronize(queue_.stream));
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < flags.size(); ++i) {
      if (flags[i] != 0) out.push_back(i);
    }
    return out;
  }

 private:
  const Queue& queue_;
  std::span<Weight> to_;
  std::span<const WeightSource> from_;
  std::size_t slot_bytes_;
  Pinned pinned_;
  Buffer room_;   // a piece whose rows are not in place yet; kernels and copies use it in turn
  Buffer flags_;  // i32 for each weight
  std::vector<Event> sent_;
};

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
  const WeightView shape = view(weight);
  const auto bytes = static_cast<std::size_t>(shape.columns == nullptr ? weight.count * shape.bytes_between
                                                                       : column_order_offset(shape));
  weight.memory = memory_.allocate(bytes + weight.column_order.size() * sizeof(std::int32_t), "weights");
  expanded_bytes_ =
      std::max(expanded_bytes_, expanded_bytes({weight.format, weight.count, weight.rows, weight.cols}));
}

void Packer::upload_column_order(const Weight& weight) {
  if (weight.column_order.empty()) return;
  staging_.upload(weight.memory.data() + column_order_offset(view(weight)),
                  std::as_bytes(std::span(weight.column_order)));
}

std::size_t Packer::expanded_bytes(const WeightShape& weight) const {
  if (!rearranges_ || weight.format == WeightFormat::bf16) return 0;
  const auto one = static_cast<std::size_t>(tiles::padded_rows(weight.rows) / tiles::tile_rows *
                                            tiles::tile_bytes(WeightFormat::bf16, weight.cols));
  const std::size_t all = one * static_cast<std::size_t>(weight.count);
  const std::size_t min_bytes = weight.count > 1 ? one : 0;  // an expert is never cut
  return std::max(std::min(all, max_expanded), min_bytes);
}

Weight Packer::pack(const HostWeight& source) {
  Weight weight = {source.format, source.count, source.rows, source.cols, {}, 0, {}};
  weight.column_order.assign(source.column_order.begin(), source.column_order.end());
  allocate(weight, layout_for(source.format));
  const auto rows = static_cast<std::size_t>(source.count) * static_cast<std::size_t>(source.rows);
  expects(source.data.size() == rows * bytes_for(source.format, static_cast<std::size_t>(source.cols)),
          "a host weight has as many bytes as its shape says");
  if (layout_for(source.format) != Layout::stored) {
    if (upload_rearranged(weight, source)) {
      upload_column_order(weight);
      return weight;
    }
    allocate(weight, Layout::stored);
  }
  staging_.upload(weight.memory.data(), source.data);
  upload_column_order(weight);
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

void load_weights(const Queue& queue, Packer& packer, DeviceMemory& memory, std::span<Weight> to,
                  std::span<const WeightSource> from, int threads) {
  expects(to.size() == from.size(), "there is a place for every weight that is loaded");
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = {from[i].format, from[i].count, from[i].rows, from[i].cols, {}, 0, from[i].column_order};
    packer.allocate(to[i], packer.layout_for(from[i].format));
  }
  const std::vector<Piece> pieces = cut_into_pieces(from, piece_bytes);
  if (pieces.empty()) return;
  const auto largest = std::ranges::max_element(pieces, {}, &Piece::bytes)->bytes;
  const int readers = reader_count(threads);
  const auto slots = static_cast<int>(
      std::min<std::size_t>(pieces.size(), static_cast<std::size_t>(readers + slots_under_way)));
  CudaRing ring(queue, memory, to, from, slots, (largest + 255) / 256 * 256);
  upload_pieces(ring, from, pieces, readers);
  std::vector<Piece> again;
  for (const std::size_t weight : ring.too_large()) {
    packer.allocate(to[weight], Layout::stored);
    std::ranges::copy_if(pieces, std::back_inserter(again),
                         [&](const Piece& p) { return p.weight == weight; });
  }
  if (!again.empty()) upload_pieces(ring, from, again, readers);
  for (const Weight& weight : to) packer.upload_column_order(weight);
  check(cudaStreamSynchronize(queue.stream));
}

}  // namespace inferno::cuda
