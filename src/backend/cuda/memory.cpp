#include "backend/cuda/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "backend/cuda/check.h"
#include "base/error.h"
#include "base/sizes.h"

namespace inferno::cuda {
void DeviceMemory::refuse(std::size_t bytes, std::string_view purpose) const {
  std::size_t free = 0, total = 0;
  check(cudaMemGetInfo(&free, &total));
  std::string plan;
  std::size_t taken = 0;
  for (const auto& [what, size] : *ledger_) {
    plan += fmt::format("{}{} {}", plan.empty() ? "" : ", ", what, human_size(size));
    taken += size;
  }
  fail(
      ErrorKind::device,
      fmt::format("{}: {} of device memory needed, {} of {} free; allocated so far {} ({})", purpose,
                  human_size(bytes), human_size(free), human_size(total), human_size(taken),
                  plan.empty() ? "nothing" : plan),
      {.why = fmt::format("this GPU has room for {} of weights, cache and activations in total",
                          human_size(taken + free)),
       .next = "use a shorter context, fewer sequences or a smaller quantization, stop other programs on the "
               "GPU (`nvidia-smi`), or choose --device cpu"});
}

Buffer DeviceMemory::allocate(std::size_t bytes, std::string_view purpose) {
  if (bytes == 0) return {};
  void* data = nullptr;
  const cudaError_t status = cudaMalloc(&data, bytes);
  if (status == cudaErrorMemoryAllocation) {
    cudaGetLastError();  // forgotten, so that it does not show up at the next launch
    refuse(bytes, purpose);
  }
  check(status);
  check(cudaMemsetAsync(data, 0, bytes, stream_));
  const auto [entry, fresh] = ledger_->try_emplace(std::string(purpose));
  entry->second += bytes;
  return Buffer(static_cast<std::byte*>(data), bytes,
                [ledger = ledger_, bytes, name = std::string(purpose)](std::byte* memory) {
                  cudaFree(memory);
                  ledger->find(name)->second -= bytes;
                });
}

std::byte* Workspace::at_least(std::size_t bytes) {
  if (bytes > buffer_.size()) {
    buffer_ = {};
    buffer_ = memory_.allocate(bytes, purpose_);
  }
  return buffer_.data();
}

Staging::~Staging() {
  for (Slot& slot : slots_) {
    if (slot.done != nullptr) cudaEventDestroy(slot.done);
    if (slot.memory != nullptr) cudaFreeHost(slot.memory);
  }
}

// A slot whose last copy is complete, with room for `bytes`. Several small uploads may be in flight, so
// there are more than two slots; only the first two, which carry weights, are large.
Staging::Slot& Staging::next(std::size_t bytes) {
  const std::size_t turn = bytes > (std::size_t{64} << 10) ? 2 : std::size(slots_) - 2;
  Slot& slot = slots_[turn == 2 ? at_++ % 2 : 2 + at_++ % turn];
  if (slot.done == nullptr) {
    check(cudaEventCreateWithFlags(&slot.done, cudaEventDisableTiming));
  } else {
    check(cudaEventSynchronize(slot.done));
  }
  if (slot.size < bytes) {
    if (slot.memory != nullptr) check(cudaFreeHost(slot.memory));
    slot.memory = nullptr;
    slot.size = std::max(std::bit_ceil(bytes), std::size_t{64} << 10);  // steps differ in size
    void* memory = nullptr;
    check(cudaHostAlloc(&memory, slot.size, cudaHostAllocDefault));
    slot.memory = static_cast<std::byte*>(memory);
  }
  return slot;
}

void Staging::upload(std::byte* to, std::span<const std::byte> from) {
  for (std::size_t done = 0; done < from.size();) {
    const std::size_t bytes = std::min(piece, from.size() - done);
    Slot& slot = next(bytes);
    std::memcpy(slot.memory, from.data() + done, bytes);
    check(cudaMemcpyAsync(to + done, slot.memory, bytes, cudaMemcpyHostToDevice, stream_));
    check(cudaEventRecord(slot.done, stream_));
    done += bytes;
  }
}

void Staging::download(std::span<std::byte> to, const std::byte* from) {
  for (std::size_t done = 0; done < to.size();) {
    const std::size_t bytes = std::min(piece, to.size() - done);
    Slot& slot = next(bytes);
    check(cudaMemcpyAsync(slot.memory, from + done, bytes, cudaMemcpyDeviceToHost, stream_));
    check(cudaStreamSynchronize(stream_));
    std::memcpy(to.data() + done, slot.memory, bytes);
    done += bytes;
  }
  if (to.empty()) check(cudaStreamSynchronize(stream_));
}

Buffer host_memory(cudaStream_t stream, std::size_t bytes) {
  void* data = nullptr;
  check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault));
  std::memset(data, 0, bytes);
  return Buffer(static_cast<std::byte*>(data), bytes, [stream](std::byte* memory) {
    cudaStreamSynchronize(stream);  // a kernel may still be writing
    cudaFreeHost(memory);
  });
}

Marks::~Marks() {
  for (cudaEvent_t event : events_) {
    if (event != nullptr) cudaEventDestroy(event);
  }
}

std::uint64_t Marks::set() {
  cudaEvent_t& event = events_[next_ % Backend::max_marks];
  if (event == nullptr) check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  check(cudaEventRecord(event, stream_));
  return next_++;
}

void Marks::wait_for(std::uint64_t mark) const {
  expects(mark < next_ && next_ - mark <= Backend::max_marks, "only the latest marks are remembered");
  check(cudaEventSynchronize(events_[mark % Backend::max_marks]));
}

EventStepTimer::EventStepTimer(cudaStream_t stream) : stream_(stream) {
  check(cudaGetDevice(&device_));
}

EventStepTimer::~EventStepTimer() {
  for (const Step& step : steps_) {
    if (step.begin != nullptr) cudaEventDestroy(step.begin);
    if (step.end != nullptr) cudaEventDestroy(step.end);
  }
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  if (last_end_ != nullptr) cudaEventDestroy(last_end_);
}

cudaEvent_t EventStepTimer::record() {
  cudaEvent_t event = nullptr;
  if (spare_.empty()) {
    check(cudaEventCreate(&event));
  } else {
    event = spare_.back();
    spare_.pop_back();
  }
  check(cudaEventRecord(event, stream_));
  return event;
}

void EventStepTimer::begin() {
  check(cudaSetDevice(device_));  // the engine's thread begins a step with this
  steps_.push_back({.begin = record(), .after_rest = std::exchange(rested_, false)});
  collect();
}

// The oldest step without an end: a draw may be queued after the next step began.
void EventStepTimer::end() {
  const auto step = std::ranges::find(steps_, false, &Step::is_queued);
  expects(step != steps_.end(), "a step that ends has begun");
  step->end = record();
  step->is_queued = true;
}

// Adds the steps that are done.
void EventStepTimer::collect() {
  const auto seconds = [](cudaEvent_t from, cudaEvent_t to) {
    float milliseconds = 0.0f;
    check(cudaEventElapsedTime(&milliseconds, from, to));
    return 1e-3 * static_cast<double>(milliseconds);
  };
  while (!steps_.empty() && steps_.front().is_queued && cudaEventQuery(steps_.front().end) == cudaSuccess) {
    const Step step = steps_.front();
    steps_.pop_front();
    times_.busy += seconds(step.begin, step.end);
    if (last_end_ != nullptr) {
      if (!step.after_rest) times_.idle += seconds(last_end_, step.begin);
      spare_.push_back(last_end_);
    }
    spare_.push_back(step.begin);
    last_end_ = step.end;
  }
}

StepTimes EventStepTimer::times() {
  collect();
  return times_;
}

}  // namespace inferno::cuda
