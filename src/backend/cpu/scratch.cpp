#include "backend/cpu/scratch.h"

#include "backend/cpu/memory.h"

namespace inferno::cpu {
namespace {

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
