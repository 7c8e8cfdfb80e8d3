// The pieces of a vocabulary (bytes to id and id to bytes, in two flat tables) and the interface of the
// models that cut text into them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"

namespace inferno {

// Byte strings by id, in one allocation. Ids never set are holes: has() is false, text() empty.
class TokenTexts {
 public:
  explicit TokenTexts(int size = 0) : entries_(static_cast<std::size_t>(size)) {}
  int size() const { return static_cast<int>(entries_.size()); }
  bool has(TokenId id) const { return id >= 0 && id < size() && at(id).length != absent; }
  std::string_view text(TokenId id) const {
    const Entry& entry = at(id);
    return entry.length == absent ? std::string_view{}
                                  : std::string_view(arena_).substr(entry.offset, entry.length);
  }
  // Grows as needed; a second text for the same id replaces the first.
  void set(TokenId id, std::string_view text);
  void reserve_bytes(std::size_t bytes) { arena_.reserve(bytes); }

 private:
  static constexpr std::uint32_t absent = 0xFFFFFFFF;
  struct Entry {
    std::uint32_t offset = 0;
    std::uint32_t length = absent;
  };
  const Entry& at(TokenId id) const { return entries_[static_cast<std::size_t>(id)]; }

  std::vector<Entry> entries_;
  std::string arena_;
};

// The lookup key of a piece. Loading makes half a million lookups, each a cache miss; a separate key allows
// to prefetch several of them before they are used.
struct PieceKey {
  std::uint64_t hash = 0;
  std::uint64_t head = 0;   // the first eight bytes
  std::uint32_t check = 0;  // hash bits and the length, at most 255
};
PieceKey key_of(std::string_view piece);

// Pieces in the form the model looks them up: raw bytes for byte-level vocabularies, text for others.
class Vocabulary {
 public:
  Vocabulary(int size, std::size_t expected_pieces);
  // False if the piece or the id is already in use.
  bool add(TokenId id, std::string_view piece);
  std::optional<TokenId> find(std::string_view piece) const {
    const TokenId id = lookup(piece);
    return id < 0 ? std::nullopt : std::optional(id);
  }
  // -1 if there is no such piece; for inner loops.
  TokenId lookup(std::string_view piece) const { return lookup(key_of(piece), piece); }
  TokenId lookup(const PieceKey& key, std::string_view piece) const;
  void prefetch(const PieceKey& key) const { __builtin_prefetch(&slots_[key.hash & (slots_.size() - 1)]); }
  std::string_view piece(TokenId id) const { return texts_.text(id); }
  bool has(TokenId id) const { return texts_.has(id); }
  int size() const { return texts_.size(); }

 private:
  // Pieces of up to eight bytes, which most are, are compared without reading their text.
  struct Slot {
    std::uint64_t head = 0;
    std::uint32_t check = 0;
    TokenId id = -1;
  };
  bool matches(const Slot& slot, const PieceKey& key, std::string_view piece) const {
    return slot.head == key.head && slot.check == key.check &&
           (piece.size() <= 8 || texts_.text(slot.id) == piece);
  }
  TokenTexts texts_;
  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

// Turns one piece of pre-split text into tokens. Thread-safe: encode() keeps its state on the stack.
class SubwordModel {
 public:
  virtual ~SubwordModel() = default;
  // Appends the tokens of `piece`, which is not empty. May stop once `out` has more than `max_tokens`.
  virtual void encode(std::vector<TokenId>& out, std::string_view piece, std::size_t max_tokens) const = 0;
  void encode(std::vector<TokenId>& out, std::string_view piece) const {
    encode(out, piece, std::numeric_limits<std::size_t>::max());
  }
  // Whether each byte of a piece is in a token, and no token stands for more bytes than its text has: an
  // unknown token may stand for any number.
  virtual bool keeps_every_byte() const = 0;
};

}  // namespace inferno
