#include "backend/cpu/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/sizes.h"

namespace inferno::cpu {
namespace {

constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::size_t min_checked = std::size_t{16}
                                    << 20;  // for less, reading /proc costs more than it saves

[[noreturn]] void refuse(std::size_t bytes, std::uint64_t available, std::string_view purpose) {
  fail(ErrorKind::io,
       fmt::format("{}: needs {} of memory, {} available", purpose, human_size(bytes), human_size(available)),
       {.why = "the operating system would kill the process later instead of refusing the allocation",
        .next = "use a smaller model, a smaller quantization, a shorter context or fewer sequences"});
}

// Grows by half again, so that a batch that grows token by token does not allocate each time.
float* at_least(Buffer& buffer, std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  if (buffer.size() < bytes) {
    buffer = Buffer();  // first, so that both are never held at once
    buffer = allocate(bytes + bytes / 2, "intermediate results");
  }
  return reinterpret_cast<float*>(buffer.data());
}

}  // namespace

Buffer allocate(std::size_t bytes, std::string_view purpose, const SystemRoots& roots) {
  if (bytes == 0) return {};
  const bool large = bytes >= huge_page;
  if (bytes >= min_checked) {
    if (const std::uint64_t available = system_memory(roots).obtainable; bytes > available) {
      refuse(bytes, available, purpose);
    }
  }
  // The kernel zeroes a mapping. Its start is only page aligned, so a large one gets the slack it needs to
  // begin on a huge page.
  const std::size_t mapped = bytes + (large ? huge_page : 0);
  void* base = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) refuse(bytes, system_memory(roots).obtainable, purpose);
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
  if (bytes == 0 || bytes > chunk_bytes / 4) return cpu::allocate(bytes, purpose, roots_);
  if (chunk_ == nullptr || used_ + bytes > chunk_->size()) {
    chunk_ = std::make_shared<Buffer>(cpu::allocate(chunk_bytes, purpose, roots_));
    used_ = 0;
  }
  std::byte* first = chunk_->data() + used_;
  used_ += (bytes + alignment - 1) / alignment * alignment;
  return Buffer(first, bytes, [chunk = chunk_](std::byte*) {});
}

Scratch::Scratch(int workers) : of_worker_(static_cast<std::size_t>(workers)) {}

float* Scratch::own(int worker, std::size_t count) {
  return at_least(of_worker_[static_cast<std::size_t>(worker)], count);
}

float* Scratch::shared(Use use, std::size_t count) {
  return at_least(shared_[static_cast<std::size_t>(use)], count);
}

Matrix Scratch::shared(Use use, std::int32_t rows, std::int32_t cols) {
  const std::size_t count = static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  return {reinterpret_cast<std::byte*>(shared(use, count)), DType::f32, rows, cols};
}

}  // namespace inferno::cpu
