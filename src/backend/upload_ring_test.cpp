#include "backend/upload_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>
#include <thread>

#include "backend/backend.h"
#include "base/error.h"
#include "tensor/random_weight.h"

namespace inferno {
namespace {

using ::testing::HasSubstr;

// Rows of bf16 that say where they come from: their number in the source, then the source's.
struct Stored {
  std::vector<std::byte> bytes;
  WeightSource source;
};

Stored stored(int count, int rows, int cols, std::uint64_t seed) {
  Stored out;
  out.source = {.format = WeightFormat::bf16, .count = count, .rows = rows, .cols = cols, .read = {}};
  out.bytes.resize(out.source.bytes());
  fill_random(WeightFormat::bf16, out.bytes, 1.0f, seed);
  return out;
}

WeightSource reading(const Stored& from) {
  WeightSource source = from.source;
  source.read = [&from](std::int64_t first, std::span<std::byte> to) {
    std::memcpy(to.data(), from.bytes.data() + static_cast<std::size_t>(first) * from.source.row_bytes(),
                to.size());
  };
  return source;
}

// A device that copies late: it reads a slot only when wait() is called, so that a slot that is overwritten
// too early is detected.
class LateDevice final : public RingDevice {
 public:
  LateDevice(int slots, std::size_t slot_bytes, std::span<const WeightSource> sources) {
    slots_.resize(static_cast<std::size_t>(slots), std::vector<std::byte>(slot_bytes));
    under_way_.resize(slots_.size());
    for (const WeightSource& source : sources) {
      memory_.emplace_back(source.bytes());
      row_bytes_.push_back(source.row_bytes());
    }
  }
  int slots() const override { return static_cast<int>(slots_.size()); }
  std::span<std::byte> slot(int index) override { return slots_[static_cast<std::size_t>(index)]; }
  void send(int slot, const Piece& piece) override {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    EXPECT_EQ(under_way_[static_cast<std::size_t>(slot)], nullptr) << "sent twice without waiting";
    if (++sent_ == fails_at) fail(ErrorKind::device, "the device fell off the bus");
    under_way_[static_cast<std::size_t>(slot)] = &piece;
  }
  void wait(int slot) override {
    EXPECT_EQ(std::this_thread::get_id(), thread_);
    const Piece*& piece = under_way_[static_cast<std::size_t>(slot)];
    ASSERT_NE(piece, nullptr);
    std::memcpy(
        memory_[piece->weight].data() + static_cast<std::size_t>(piece->first) * row_bytes_[piece->weight],
        slots_[static_cast<std::size_t>(slot)].data(), piece->bytes);
    piece = nullptr;
  }
  const std::vector<std::byte>& memory(std::size_t weight) const { return memory_[weight]; }

  int fails_at = 0;

 private:
  std::vector<std::vector<std::byte>> slots_;
  std::vector<const Piece*> under_way_;
  std::vector<std::vector<std::byte>> memory_;
  std::vector<std::size_t> row_bytes_;
  std::thread::id thread_ = std::this_thread::get_id();
  int sent_ = 0;
};

TEST(UploadRing, CutsWholeRowsAndNeverAcrossWeights) {
  const Stored a = stored(2, 5, 16, 1), b = stored(1, 1, 4096, 2);
  const std::vector<WeightSource> sources = {reading(a), reading(b)};
  const std::vector<Piece> pieces = cut_into_pieces(sources, /*most=*/100);  // three rows of 32 bytes
  ASSERT_EQ(pieces.size(), 5u);
  EXPECT_EQ(pieces[0].rows, 3);
  EXPECT_EQ(pieces[3].first, 9);
  EXPECT_EQ(pieces[3].rows, 1);
  EXPECT_EQ(pieces[4].weight, 1u);
  EXPECT_EQ(pieces[4].bytes, 8192u) << "a row is never cut";
}

TEST(UploadRing, BringsEveryByteToItsPlace) {
  const Stored a = stored(1, 301, 64, 1), b = stored(7, 40, 32, 2), c = stored(1, 3, 48, 3);
  const std::vector<WeightSource> sources = {reading(a), reading(b), reading(c)};
  const std::vector<Piece> pieces = cut_into_pieces(sources, 512);
  for (const int slots : {1, 2, 5}) {
    for (const int threads : {1, 3, 8}) {
      LateDevice device(slots, 512, sources);
      upload_pieces(device, sources, pieces, threads);
      EXPECT_EQ(device.memory(0), a.bytes);
      EXPECT_EQ(device.memory(1), b.bytes);
      EXPECT_EQ(device.memory(2), c.bytes);
    }
  }
}

TEST(UploadRing, ReadsWithSeveralThreadsAtOnce) {
  Stored a = stored(1, 64, 64, 1);
  WeightSource source = reading(a);
  std::atomic<int> inside = 0;
  source.read = [&](std::int64_t, std::span<std::byte>) {
    ++inside;
    while (inside < 3) std::this_thread::yield();  // ends only when three are here together
  };
  const std::vector<WeightSource> sources = {source};
  LateDevice device(4, 128, sources);
  upload_pieces(device, sources, cut_into_pieces(sources, 128), 3);
  EXPECT_EQ(inside, 64);
}

TEST(UploadRing, ThrowsWhatAReaderThrows) {
  const Stored a = stored(1, 200, 64, 1);
  WeightSource source = reading(a);
  source.read = [](std::int64_t first, std::span<std::byte>) {
    if (first == 150) fail(ErrorKind::corrupt, "model.safetensors: expected 10 bytes, but it ends at 5");
  };
  const std::vector<WeightSource> sources = {source};
  LateDevice device(3, 128, sources);
  try {
    upload_pieces(device, sources, cut_into_pieces(sources, 128), 4);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("it ends at 5"));
  }
}

TEST(UploadRing, EndsItsThreadsWhenTheDeviceFails) {
  const Stored a = stored(1, 200, 64, 1);
  const std::vector<WeightSource> sources = {reading(a)};
  LateDevice device(3, 128, sources);
  device.fails_at = 20;
  EXPECT_THROW(upload_pieces(device, sources, cut_into_pieces(sources, 128), 4), Error);
}

TEST(UploadRing, HasNothingToDoForNothing) {
  LateDevice device(1, 1, {});
  upload_pieces(device, {}, {}, 4);
}

TEST(WeightSource, PutsAlternatingRowsOneHalfAfterTheOther) {
  Stored a = stored(2, 6, 16, 1);
  WeightSource source = reading(a);
  source.alternating = 6;
  const std::vector<std::byte> ordered = read_weight(source);
  const auto row = [](const std::vector<std::byte>& bytes, std::size_t at) {
    return std::vector(bytes.begin() + static_cast<std::ptrdiff_t>(at * 32),
                       bytes.begin() + static_cast<std::ptrdiff_t>((at + 1) * 32));
  };
  const std::vector<std::size_t> stored_as = {0, 2, 4, 1, 3, 5, 6, 8, 10, 7, 9, 11};
  for (std::size_t i = 0; i < stored_as.size(); ++i) {
    EXPECT_EQ(row(ordered, i), row(a.bytes, stored_as[i])) << i;
  }
  std::set<std::int64_t> places;
  for (std::int64_t i = 0; i < 12; ++i) places.insert(decoder_row(i, 6));
  EXPECT_EQ(places.size(), 12u);
}

}  // namespace
}  // namespace inferno
