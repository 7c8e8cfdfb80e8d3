// An open-addressing map from 64-bit keys to 64-bit values: merges by token pair, trie edges by node and
// byte. Half a million entries must load in tens of milliseconds, which node-based maps cannot do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace inferno {

class FlatMap {
 public:
  // Larger than any key or value stored here.
  static constexpr std::uint64_t none = std::numeric_limits<std::uint64_t>::max();

  explicit FlatMap(std::size_t expected = 0) { slots_.resize(capacity_for(expected)); }

  std::uint64_t find(std::uint64_t key) const {
    for (std::size_t at = home(key);; at = (at + 1) & mask()) {
      const Slot& slot = slots_[at];
      if (slot.key == key) return slot.value;
      if (slot.key == none) return none;
    }
  }

  // Replaces an earlier value.
  void set(std::uint64_t key, std::uint64_t value) {
    if ((size_ + 1) * 2 > slots_.size()) grow();
    place(key, value);
  }

  void prefetch(std::uint64_t key) const { __builtin_prefetch(&slots_[home(key)]); }

 private:
  struct Slot {
    std::uint64_t key = none;
    std::uint64_t value = none;
  };

  static std::size_t capacity_for(std::size_t entries) {
    std::size_t capacity = 16;
    while (capacity < entries * 2) capacity *= 2;
    return capacity;
  }
  std::size_t mask() const { return slots_.size() - 1; }
  std::size_t home(std::uint64_t key) const {
    std::uint64_t mixed = (key ^ (key >> 32)) * 0x9E3779B97F4A7C15U;
    mixed ^= mixed >> 29;
    return static_cast<std::size_t>(mixed) & mask();
  }
  void place(std::uint64_t key, std::uint64_t value) {
    std::size_t at = home(key);
    while (slots_[at].key != key && slots_[at].key != none) at = (at + 1) & mask();
    if (slots_[at].key == none) ++size_;
    slots_[at] = {.key = key, .value = value};
  }
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    size_ = 0;
    for (const Slot& slot : old) {
      if (slot.key != none) place(slot.key, slot.value);
    }
  }

  std::vector<Slot> slots_;
  std::size_t size_ = 0;
};

}  // namespace inferno
