#include "backend/upload_ring.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/start_threads.h"

namespace inferno {
namespace {

struct Filled {
  int slot = 0;
  const Piece* piece = nullptr;
};

// State that readers and the sender share.
class Ring {
 public:
  Ring(int slots, std::span<const Piece> pieces) : pieces_(pieces) {
    for (int slot = 0; slot < slots; ++slot) free_.push_back(slot);
  }

  // The next piece and a slot for it; nullopt when there is nothing left to read.
  std::optional<Filled> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return stopped_ || next_ == pieces_.size() || !free_.empty(); });
    if (stopped_ || next_ == pieces_.size()) return std::nullopt;
    const Filled work = {free_.front(), &pieces_[next_++]};
    free_.pop_front();
    return work;
  }
  void fill(Filled work) {
    change([&] { filled_.push_back(work); });
  }
  void release(int slot) {
    change([&] { free_.push_back(slot); });
  }
  void stop() {
    change([&] { stopped_ = true; });
  }
  void fail_with(std::exception_ptr error) {
    change([&] {
      if (!error_) error_ = std::move(error);
      stopped_ = true;
    });
  }

  // A filled slot. If there is none: waits for one if `may_wait`, else nullopt. Rethrows what a reader threw.
  std::optional<Filled> filled(bool may_wait) {
    std::unique_lock lock(mutex_);
    if (may_wait) changed_.wait(lock, [&] { return error_ || !filled_.empty(); });
    if (error_) std::rethrow_exception(error_);
    if (filled_.empty()) return std::nullopt;
    const Filled first = filled_.front();
    filled_.pop_front();
    return first;
  }

 private:
  template <class Change>
  void change(const Change& make) {
    const std::lock_guard lock(mutex_);
    make();
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::span<const Piece> pieces_;
  std::size_t next_ = 0;
  std::deque<int> free_;
  std::deque<Filled> filled_;
  bool stopped_ = false;
  std::exception_ptr error_;
};

// The reading threads, joined at the end of the scope even if the device throws.
class Readers {
 public:
  Readers(Ring& ring, RingDevice& device, std::span<const WeightSource> sources, int threads) : ring_(ring) {
    std::vector<std::span<std::byte>> slots;
    for (int slot = 0; slot < device.slots(); ++slot) slots.push_back(device.slot(slot));
    start_threads(
        threads_, threads, [&ring, sources, slots](int) { serve(ring, sources, slots); }, [this] { stop(); });
  }
  ~Readers() { stop(); }
  Readers(const Readers&) = delete;
  Readers& operator=(const Readers&) = delete;

 private:
  void stop() {
    ring_.stop();
    for (std::thread& thread : threads_) thread.join();
  }
  static void serve(Ring& ring, std::span<const WeightSource> sources,
                    const std::vector<std::span<std::byte>>& slots) {
    try {
      while (const auto work = ring.take()) {
        const auto to = slots[static_cast<std::size_t>(work->slot)].first(work->piece->bytes);
        sources[work->piece->weight].read(work->piece->first, to);
        ring.fill(*work);
      }
    } catch (...) {
      ring.fail_with(std::current_exception());
    }
  }

  Ring& ring_;
  std::vector<std::thread> threads_;
};

}  // namespace

std::vector<Piece> cut_into_pieces(std::span<const WeightSource> sources, std::size_t max_bytes) {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::size_t row_bytes = sources[i].row_bytes();
    if (row_bytes == 0) continue;
    const auto at_once = std::max<std::int64_t>(1, static_cast<std::int64_t>(max_bytes / row_bytes));
    for (std::int64_t first = 0; first < sources[i].all_rows(); first += at_once) {
      const std::int64_t rows = std::min(at_once, sources[i].all_rows() - first);
      pieces.push_back({i, first, rows, static_cast<std::size_t>(rows) * row_bytes});
    }
  }
  return pieces;
}

void upload_pieces(RingDevice& device, std::span<const WeightSource> sources, std::span<const Piece> pieces,
                   int threads) {
  expects(device.slots() > 0 && threads > 0, "a ring has slots and readers");
  Ring ring(device.slots(), pieces);
  std::deque<int> under_way;
  const Readers readers(
      ring, device, sources,
      static_cast<int>(std::min<std::size_t>(pieces.size(), static_cast<std::size_t>(threads))));
  const auto free_oldest = [&] {
    device.wait(under_way.front());
    ring.release(under_way.front());
    under_way.pop_front();
  };
  for (std::size_t sent = 0; sent < pieces.size(); ++sent) {
    std::optional<Filled> next;
    // Free slots for the readers instead of waiting for them.
    while (!(next = ring.filled(under_way.empty()))) free_oldest();
    device.send(next->slot, *next->piece);
    under_way.push_back(next->slot);
  }
  while (!under_way.empty()) free_oldest();
}

}  // namespace inferno
