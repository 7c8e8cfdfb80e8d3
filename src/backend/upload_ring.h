// Stored weights on their way to a device with memory of its own. Copying out of the page cache keeps a
// thread at some 5 GB/s, a tenth of what the bus carries, so several threads read pieces of files into a ring
// of buffers, and the calling thread hands full buffers to the device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/weight_source.h"

namespace inferno {

struct Piece {
  std::size_t weight = 0;            // of the sources
  std::int64_t first = 0, rows = 0;  // as they are stored
  std::size_t bytes = 0;
};

// Whole rows of one source each, as many as `most` bytes hold and at least one; in the order of the sources.
std::vector<Piece> cut_into_pieces(std::span<const WeightSource> sources, std::size_t most);

// The device's end of the ring. All calls come from the thread that runs upload_pieces(); only the memory of
// slots is written by others.
class RingDevice {
 public:
  virtual ~RingDevice() = default;
  virtual int slots() const = 0;
  // At least as large as the largest piece.
  virtual std::span<std::byte> slot(int index) = 0;
  // Queues the piece that lies in the slot. The slot is left alone until wait() returns.
  virtual void send(int slot, const Piece& piece) = 0;
  virtual void wait(int slot) = 0;
};

// Returns when all pieces have been sent, in whatever order they came, and none is under way. What a reader
// or the device throws is thrown here, after all threads have ended.
void upload_pieces(RingDevice& device, std::span<const WeightSource> sources, std::span<const Piece> pieces,
                   int threads);

}  // namespace inferno
