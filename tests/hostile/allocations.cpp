#include "hostile/allocations.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

namespace inferno::allocations {
namespace {

bool counting = false;
Cost cost;
std::size_t alive = 0;
std::size_t alive_at_start = 0;

// A size from a hostile file must fail here instead of exhausting the machine.
constexpr std::size_t refused_size = std::size_t{1} << 30;

void* take(std::size_t size) {
  if (size > refused_size) throw std::bad_alloc();
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  alive += ::malloc_usable_size(memory);
  if (counting) {
    cost.largest = std::max(cost.largest, size);
    cost.peak = std::max(cost.peak, alive - std::min(alive, alive_at_start));
  }
  return memory;
}

void give_back(void* memory) noexcept {
  if (memory == nullptr) return;
  alive -= std::min(alive, ::malloc_usable_size(memory));
  std::free(memory);
}

}  // namespace

void start() {
  cost = {};
  alive_at_start = alive;
  counting = true;
}

Cost stop() {
  counting = false;
  return cost;
}

}  // namespace inferno::allocations

void* operator new(std::size_t size) {
  return inferno::allocations::take(size);
}
void* operator new[](std::size_t size) {
  return inferno::allocations::take(size);
}
// std::stable_sort asks for its memory in this way.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  try {
    return inferno::allocations::take(size);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void operator delete(void* memory) noexcept {
  inferno::allocations::give_back(memory);
}
void operator delete[](void* memory) noexcept {
  inferno::allocations::give_back(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  inferno::allocations::give_back(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  inferno::allocations::give_back(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
  inferno::allocations::give_back(memory);
}
