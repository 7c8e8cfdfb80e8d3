#include "text/bpe.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/utf8.h"
#include "text/merge_symbols.h"

namespace inferno {

void MergeTable::add(TokenId left, TokenId right, TokenId result, std::uint32_t rank) {
  pairs_.set(key(left, right), static_cast<std::uint64_t>(rank) << 32 | static_cast<std::uint32_t>(result));
}

Bpe::Bpe(Vocabulary vocabulary, MergeTable merges, BpeOptions options, std::string word_start)
    : vocabulary_(std::move(vocabulary)),
      merges_(std::move(merges)),
      options_(options),
      word_start_(std::move(word_start)),
      whole_(std::make_unique<std::atomic<Whole>[]>(static_cast<std::size_t>(vocabulary_.size()))) {
  has_fallback_ = options_.byte_fallback;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    single_byte_[byte] = vocabulary_.lookup({&c, 1});
    fallback_[byte] = vocabulary_.lookup(fmt::format("<0x{:02X}>", byte));
  }
  if (!vocabulary_.find(word_start_) || options_.ignore_merges) word_start_.clear();
}

void Bpe::encode(std::vector<TokenId>& out, std::string_view piece) const {
  if (word_start_.empty()) return encode_word(out, piece);
  std::size_t begin = 0;
  std::size_t searched = 0;
  while (true) {
    const std::size_t found = piece.find(word_start_, searched);
    if (found == std::string_view::npos) break;
    // A run of word starts stays together with the word behind it.
    if (found > searched && found > begin) {
      encode_word(out, piece.substr(begin, found - begin));
      begin = found;
    }
    searched = found + word_start_.size();
  }
  encode_word(out, piece.substr(begin));
}

void Bpe::encode_word(std::vector<TokenId>& out, std::string_view word) const {
  const TokenId token = vocabulary_.lookup(word);
  if (token >= 0) {
    std::atomic<Whole>& whole = whole_[static_cast<std::size_t>(token)];
    if (options_.ignore_merges || whole.load(std::memory_order_relaxed) == Whole::yes) {
      out.push_back(token);
      return;
    }
    const std::size_t first = out.size();
    append_symbols(out, word);
    merge_symbols(out, first, merges_);
    const bool is_whole = out.size() == first + 1 && out.back() == token;
    whole.store(is_whole ? Whole::yes : Whole::no, std::memory_order_relaxed);
    return;
  }
  const std::size_t first = out.size();
  append_symbols(out, word);
  merge_symbols(out, first, merges_);
}

void Bpe::append_symbols(std::vector<TokenId>& out, std::string_view word) const {
  bool pending_unknown = false;
  const auto flush = [&] {
    if (pending_unknown) out.push_back(*options_.unknown);
    pending_unknown = false;
  };
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t length = options_.byte_level ? 1 : utf8::length_from_first_byte(word[at]);
    const std::string_view character = word.substr(at, length);
    const TokenId token =
        length == 1 ? single_byte_[static_cast<unsigned char>(word[at])] : vocabulary_.lookup(character);
    if (token >= 0) {
      flush();
      out.push_back(token);
    } else {
      append_fallback(out, character, pending_unknown);
    }
    at += length;
  }
  flush();
}

void Bpe::append_fallback(std::vector<TokenId>& out, std::string_view character,
                          bool& pending_unknown) const {
  if (has_fallback_) {
    bool complete = true;
    for (const char c : character) complete = complete && fallback_[static_cast<unsigned char>(c)] >= 0;
    if (complete) {
      for (const char c : character) out.push_back(fallback_[static_cast<unsigned char>(c)]);
      return;
    }
  }
  // Without an unknown token the character is dropped, as in the reference implementation.
  if (!options_.unknown) return;
  if (pending_unknown && !options_.fuse_unknown) out.push_back(*options_.unknown);
  pending_unknown = true;
}

}  // namespace inferno
