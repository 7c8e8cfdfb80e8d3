// Device memory: counted by purpose, so that running out of it can be explained, and staged through pinned
// host memory, because the device cannot read ordinary memory at full speed.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.h"

namespace inferno::cuda {

class DeviceMemory {
 public:
  explicit DeviceMemory(cudaStream_t stream) : stream_(stream), ledger_(std::make_shared<Ledger>()) {}

  // Zeroed. If there is not enough, Error{device} lists what is allocated, by purpose.
  Buffer allocate(std::size_t bytes, std::string_view purpose);

 private:
  using Ledger = std::map<std::string, std::size_t, std::less<>>;
  [[noreturn]] void refuse(std::size_t bytes, std::string_view purpose) const;

  cudaStream_t stream_;
  std::shared_ptr<Ledger> ledger_;  // also held by every buffer, which subtracts itself
};

// A buffer that only grows, for what operations need besides their arguments. Sized while loading.
class Workspace {
 public:
  Workspace(DeviceMemory& memory, std::string purpose) : memory_(memory), purpose_(std::move(purpose)) {}

  // Grows to at least `bytes`, losing its contents. Must not grow while a graph is recorded.
  std::byte* at_least(std::size_t bytes);
  std::size_t size() const { return buffer_.size(); }

 private:
  DeviceMemory& memory_;
  std::string purpose_;
  Buffer buffer_;
};

// Hands out parts of a workspace, each aligned to 256 bytes. A first pass without memory measures the size.
class Parts {
 public:
  explicit Parts(std::byte* start) : start_(start) {}
  template <class T>
  T* take(std::size_t count) {
    std::byte* at = start_ == nullptr ? nullptr : start_ + used_;
    used_ += (count * sizeof(T) + 255) / 256 * 256;
    return reinterpret_cast<T*>(at);
  }
  Matrix matrix(DType type, std::int64_t rows, std::int32_t cols) {
    Matrix out = {nullptr, type, static_cast<std::int32_t>(rows), cols};
    out.data = take<std::byte>(out.bytes());
    return out;
  }
  std::size_t used() const { return used_; }

 private:
  std::byte* start_;
  std::size_t used_ = 0;
};

// Pinned buffers, used in turn: while one is copied to the device, the next is filled.
class Staging {
 public:
  explicit Staging(cudaStream_t stream) : stream_(stream) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  static constexpr std::size_t piece = std::size_t{8} << 20;
  // The caller's memory is free when it returns; the copy is queued.
  void upload(std::byte* to, std::span<const std::byte> from);
  // Waits for everything queued.
  void download(std::span<std::byte> to, const std::byte* from);

 private:
  struct Slot {
    std::byte* memory = nullptr;
    cudaEvent_t done = nullptr;
    std::size_t size = 0;
  };
  Slot& next(std::size_t bytes);

  cudaStream_t stream_;
  Slot slots_[16];
  std::size_t at_ = 0;
};

// Host memory that kernels write to over the bus: a few results arrive sooner than a copy would start.
Buffer host_memory(cudaStream_t stream, std::size_t bytes);

// The latest points of a stream that the host can wait for.
class Marks {
 public:
  explicit Marks(cudaStream_t stream) : stream_(stream) {}
  ~Marks();
  Marks(const Marks&) = delete;
  Marks& operator=(const Marks&) = delete;

  std::uint64_t set();
  void wait_for(std::uint64_t mark) const;

 private:
  cudaStream_t stream_;
  cudaEvent_t events_[Backend::max_marks] = {};
  std::uint64_t next_ = 0;
};

// Takes the times of steps from events in the stream. The device writes them, so that neither the host nor
// queueing ahead falsifies them.
class EventStepTimer final : public StepTimer {
 public:
  // On the current device.
  explicit EventStepTimer(cudaStream_t stream);
  ~EventStepTimer() override;
  EventStepTimer(const EventStepTimer&) = delete;
  EventStepTimer& operator=(const EventStepTimer&) = delete;

  void begin() override;
  void end() override;
  void rest() override { rested_ = true; }
  StepTimes times() override;

 private:
  struct Step {
    cudaEvent_t begin = nullptr, end = nullptr;
    bool is_queued = false;  // `end` was recorded
    bool after_rest = false;
  };
  cudaEvent_t record();
  void collect();

  cudaStream_t stream_;
  int device_ = 0;
  std::deque<Step> steps_;
  std::vector<cudaEvent_t> spare_;
  cudaEvent_t last_end_ = nullptr;
  bool rested_ = true;
  StepTimes times_;
};

}  // namespace inferno::cuda
