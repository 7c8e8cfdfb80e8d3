#include "text/vocabulary.h"

#include <cstring>

namespace inferno {
namespace {

// Eight bytes at a time; the pieces are short and the table is not exposed to chosen collisions beyond the
// file that brought it, whose size bounds the damage.
std::uint64_t hash(std::string_view text) {
  constexpr std::uint64_t multiplier = 0x9E3779B97F4A7C15U;
  std::uint64_t state = text.size() * multiplier;
  const char* at = text.data();
  std::size_t left = text.size();
  const auto mix = [&state](std::uint64_t word) {
    state = (state ^ word) * multiplier;
    state ^= state >> 32;
  };
  for (; left >= 8; left -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  std::uint64_t rest = 0;
  std::memcpy(&rest, at, left);
  mix(rest);
  return state;
}

}  // namespace

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
  const std::uint64_t full = hash(piece);
  const auto tag = static_cast<std::uint32_t>(full >> 32);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = full & mask;
  for (; slots_[at].id >= 0; at = (at + 1) & mask) {
    if (slots_[at].tag == tag && texts_.text(slots_[at].id) == piece) return false;
  }
  if (texts_.has(id) || count_ * 2 + 2 > slots_.size()) return false;
  slots_[at] = {.tag = tag, .id = id};
  texts_.set(id, piece);
  ++count_;
  return true;
}

TokenId Vocabulary::lookup(std::string_view piece) const {
  const std::uint64_t full = hash(piece);
  const auto tag = static_cast<std::uint32_t>(full >> 32);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t at = full & mask;; at = (at + 1) & mask) {
    const Slot& slot = slots_[at];
    if (slot.id < 0) return -1;
    if (slot.tag == tag && texts_.text(slot.id) == piece) return slot.id;
  }
}

}  // namespace inferno
