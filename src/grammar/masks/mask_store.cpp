#include "grammar/masks/mask_store.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

namespace inferno::grammar {
namespace {

constexpr std::size_t max_listed = 2000;  // a longer list takes more time than the whole mask
constexpr std::size_t entry_bytes = 96;

// Where the masks differ; nullopt if in too many places.
std::optional<std::vector<TokenId>> difference(std::span<const std::uint32_t> mask,
                                               const std::vector<std::uint32_t>* base) {
  std::vector<TokenId> found;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    for (std::uint32_t word = base ? mask[i] ^ (*base)[i] : mask[i]; word != 0; word &= word - 1) {
      if (found.size() == max_listed) return std::nullopt;
      found.push_back(static_cast<TokenId>(i * 32 + static_cast<std::size_t>(std::countr_zero(word))));
    }
  }
  return found;
}

}  // namespace

const std::vector<std::uint32_t>* StoredMask::words_of(const Vocabulary& vocabulary, Base base) {
  switch (base) {
    case Base::nothing:
    case Base::words: return nullptr;
    case Base::plain: return &vocabulary.plain_mask();
    case Base::ordinary: return &vocabulary.ordinary_mask();
  }
  return nullptr;
}

StoredMask::StoredMask(const Vocabulary& vocabulary, std::span<const std::uint32_t> mask) {
  mask = mask.first(vocabulary.mask_words());
  for (const Base base : {Base::nothing, Base::plain, Base::ordinary}) {
    auto toggled = difference(mask, words_of(vocabulary, base));
    if (!toggled) continue;
    base_ = base;
    toggled_ = std::move(*toggled);
    return;
  }
  words_.assign(mask.begin(), mask.end());
}

void StoredMask::write_to(const Vocabulary& vocabulary, std::span<std::uint32_t> mask) const {
  const std::vector<std::uint32_t>* base = base_ == Base::words ? &words_ : words_of(vocabulary, base_);
  const auto end = base ? std::ranges::copy(*base, mask.begin()).out : mask.begin();
  std::fill(end, mask.end(), 0u);
  for (const TokenId token : toggled_)
    mask[static_cast<std::size_t>(token) / 32] ^= std::uint32_t{1} << (token % 32);
}

std::shared_ptr<const StoredMask> SharedMasks::find(const std::string& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = masks_.find(key);
  return found == masks_.end() ? nullptr : found->second;
}

void SharedMasks::add(const std::string& key, std::shared_ptr<const StoredMask> mask) {
  const std::size_t bytes = key.size() + mask->bytes() + entry_bytes;
  const std::lock_guard lock(mutex_);
  // An answer needs each of its masks again soon or never, so that starting over costs little.
  if (bytes_ + bytes > max_bytes) {
    masks_.clear();
    bytes_ = 0;
  }
  if (masks_.emplace(key, std::move(mask)).second) bytes_ += bytes;
}

std::size_t SharedMasks::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace inferno::grammar
