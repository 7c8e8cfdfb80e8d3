// Uploads stored weights to a device with its own memory. One thread copies from the page cache at about 5
// GB/s, a tenth of the bus bandwidth, so several threads read pieces of files into a ring of buffers, and the
// calling thread hands full buffers to the device.
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

// Cuts sources into pieces of whole rows, in order: as many rows as fit into `max_bytes`, at least one.
std::vector<Piece> cut_into_pieces(std::span<const WeightSource> sources, std::size_t max_bytes);

// The device's end of the ring. All calls come from the thread that runs upload_pieces(); readers only write
// the memory of slots.
class RingDevice {
 public:
  virtual ~RingDevice() = default;
  virtual int slots() const = 0;
  // At least as large as the largest piece.
  virtual std::span<std::byte> slot(int index) = 0;
  // Queues the transfer of the piece in the slot. The slot is not reused until wait() returns.
  virtual void send(int slot, const Piece& piece) = 0;
  virtual void wait(int slot) = 0;
};

// Returns when all pieces have arrived, in any order. Rethrows what a reader or the device throws, after all
// threads have ended.
void upload_pieces(RingDevice& device, std::span<const WeightSource> sources, std::span<const Piece> pieces,
                   int threads);

}  // namespace inferno
