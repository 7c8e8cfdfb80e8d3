#include "backend/cpu/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/sizes.h"

namespace inferno::cpu {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t worth_checking = std::size_t{16} << 20;  // reading /proc for less would cost more

// The number in a file like memory.max; `otherwise` when there is none ("max", no such file).
std::size_t number_in(const char* path, std::size_t otherwise) {
  std::ifstream file(path);
  std::size_t value = 0;
  return file >> value ? value : otherwise;
}

MemoryState of_machine() {
  MemoryState state;
  std::ifstream file("/proc/meminfo");
  for (std::string key, unit; file >> key;) {
    std::size_t kibibytes = 0;
    file >> kibibytes;
    std::getline(file, unit);
    if (key == "MemTotal:") state.total = kibibytes * 1024;
    if (key == "MemAvailable:") state.available = kibibytes * 1024;
  }
  return state;
}

[[noreturn]] void refuse(std::size_t bytes, std::size_t available, std::string_view purpose) {
  fail(
      ErrorKind::io,
      fmt::format("{}: {} of memory wanted, {} available", purpose, human_size(bytes), human_size(available)),
      {.why = "the operating system would end the process rather than refuse later",
       .next = "use a smaller model, a smaller quantization, a shorter context or fewer sequences"});
}

}  // namespace

MemoryState memory_state() {
  MemoryState state = of_machine();
  const std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  const std::size_t limit = number_in("/sys/fs/cgroup/memory.max", unlimited);
  if (limit < state.total) {
    const std::size_t used = number_in("/sys/fs/cgroup/memory.current", 0);
    state.total = limit;
    state.available = std::min(state.available, limit - std::min(limit, used));
  }
  return state;
}

Buffer allocate(std::size_t bytes, std::string_view purpose) {
  if (bytes == 0) return {};
  const bool large = bytes >= huge_page;
  if (bytes >= worth_checking) {
    if (const std::size_t available = memory_state().available; bytes > available) {
      refuse(bytes, available, purpose);
    }
  }
  // A mapping is zeroed by the kernel. Its start is only page aligned, so a large one gets the slack it
  // needs to begin on a huge page.
  const std::size_t mapped = bytes + (large ? huge_page : 0);
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) refuse(bytes, memory_state().available, purpose);
  auto* first = static_cast<std::byte*>(base);
  if (large) {
    const auto address = reinterpret_cast<std::uintptr_t>(base);
    first += (huge_page - address % huge_page) % huge_page;
    madvise(base, mapped, MADV_HUGEPAGE);  // a hint: without it only speed is lost
  }
  return Buffer(first, bytes, [base, mapped](std::byte*) { munmap(base, mapped); });
}

Buffer Arena::allocate(std::size_t bytes, std::string_view purpose) {
  constexpr std::size_t chunk_bytes = std::size_t{64} << 20, alignment = 64;
  if (bytes == 0 || bytes > chunk_bytes / 4) return cpu::allocate(bytes, purpose);
  if (chunk_ == nullptr || used_ + bytes > chunk_->size()) {
    chunk_ = std::make_shared<Buffer>(cpu::allocate(chunk_bytes, purpose));
    used_ = 0;
  }
  std::byte* first = chunk_->data() + used_;
  used_ += (bytes + alignment - 1) / alignment * alignment;
  return Buffer(first, bytes, [chunk = chunk_](std::byte*) {});
}

}  // namespace inferno::cpu
