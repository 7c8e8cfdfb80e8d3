// Masks that were computed once and are used again, by the answer that computed them and by all others of the
// same constraint.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "grammar/masks/vocabulary.h"

namespace inferno::grammar {

// A mask that differs from a well-known one by few tokens is that one and the list of them; any other is kept
// as it is.
class StoredMask {
 public:
  StoredMask(const Vocabulary& vocabulary, std::span<const std::uint32_t> mask);
  // Words beyond the vocabulary are cleared.
  void write_to(const Vocabulary& vocabulary, std::span<std::uint32_t> mask) const;
  std::size_t bytes() const { return sizeof(*this) + toggled_.size() * sizeof(TokenId) + words_.size() * 4; }

 private:
  enum class Base : std::uint8_t { nothing, plain, ordinary, words };
  static const std::vector<std::uint32_t>* words_of(const Vocabulary& vocabulary, Base base);

  Base base_ = Base::words;
  std::vector<TokenId> toggled_;  // allowed if the base forbids them, and the other way around
  std::vector<std::uint32_t> words_;
};

// By what identifies a configuration in any explorer of the same machine. Thread-safe.
class SharedMasks {
 public:
  static constexpr std::size_t max_bytes = std::size_t{2} << 20;
  static constexpr std::size_t max_key = std::size_t{4} << 10;  // bytes; longer ones are not worth it

  // nullptr if it is not there.
  std::shared_ptr<const StoredMask> find(const std::string& key) const;
  void add(const std::string& key, std::shared_ptr<const StoredMask> mask);
  std::size_t bytes() const;

 private:
  mutable std::mutex mutex_;  // guards the members below
  std::unordered_map<std::string, std::shared_ptr<const StoredMask>> masks_;
  std::size_t bytes_ = 0;
};

}  // namespace inferno::grammar
