#include "text/models/vocabulary.h"

#include <cstring>

namespace inferno {

// Hashes eight bytes at a time, because pieces are short. The cost of deliberate collisions is bounded by the
// size of the file.
PieceKey key_of(std::string_view piece) {
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15U;
  std::uint64_t state = piece.size() * multiplier;
  const auto mix = [&state](std::uint64_t word) {
    state = (state ^ word) * multiplier;
    state ^= state >> 32;
  };
  PieceKey key;
  if (piece.empty()) return key;
  const char* at = piece.data();
  std::size_t left = piece.size();
  std::memcpy(&key.head, at, left < 8 ? left : 8);
  for (; left > 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, left);
  mix(rest);
  key.hash = state;
  const std::size_t length = piece.size() < 255 ? piece.size() : 255;
  key.check = (static_cast<std::uint32_t>(state >> 32) & 0xFFFFFF00U) | static_cast<std::uint32_t>(length);
  return key;
}

void TokenTexts::set(TokenId id, std::string_view text) {
  if (id >= size()) entries_.resize(static_cast<std::size_t>(id) + 1);
  entries_[static_cast<std::size_t>(id)] = {.offset = static_cast<std::uint32_t>(arena_.size()),
                                            .length = static_cast<std::uint32_t>(text.size())};
  arena_ += text;
}

Vocabulary::Vocabulary(int size, std::size_t expected_pieces) : texts_(size) {
  std::size_t capacity = 64;
  while (capacity < expected_pieces * 2 + 2) capacity *= 2;
  slots_.resize(capacity);
}

bool Vocabulary::add(TokenId id, std::string_view piece) {
  const PieceKey key = key_of(piece);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = key.hash & mask;
  for (; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (matches(slots_[at], key, piece)) return false;
  }
  if (texts_.has(id) || count_ * 2 + 2 > slots_.size()) return false;
  slots_[at] = {.head = key.head, .check = key.check, .id = id};
  texts_.set(id, piece);
  ++count_;
  return true;
}

TokenId Vocabulary::lookup(const PieceKey& key, std::string_view piece) const {
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = key.hash & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id < 0) return -1;
    if (matches(slot, key, piece)) return slot.id;
  }
}

}  // namespace inferno
