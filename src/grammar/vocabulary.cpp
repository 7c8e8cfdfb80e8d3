#include "grammar/vocabulary.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/utf8.h"
#include "grammar/characters.h"

namespace inferno::grammar {
namespace {

// Characters of the tokens of a class at most; for words and for other plain tokens.
constexpr std::array<std::uint32_t, 4> class_limits = {2, 8, 32, 1024};

// The plain characters at the beginning.
struct PlainStart {
  std::uint32_t characters = 0;
  std::size_t bytes = 0;
  bool is_word = true;
};

PlainStart plain_start(std::string_view bytes) {
  PlainStart start;
  while (start.bytes < bytes.size()) {
    const auto character = utf8::decode(bytes, start.bytes);
    if (character.length == 0 || !is_plain(character.code)) break;
    start.is_word = start.is_word && is_word(character.code);
    start.bytes += static_cast<std::size_t>(character.length);
    ++start.characters;
  }
  return start;
}

void set_bit(std::vector<std::uint32_t>& mask, TokenId token) {
  mask[static_cast<std::size_t>(token) / 32] |= std::uint32_t{1} << (token % 32);
}

// Builds a flat trie from sorted texts.
class TrieBuilder {
 public:
  explicit TrieBuilder(std::vector<TrieNode>& trie) : trie_(trie) {}

  // False if the text is the previous one; otherwise the last node is its end.
  bool add(std::string_view text) {
    if (!trie_.empty() && text == previous_) return false;
    const auto same = static_cast<std::size_t>(std::ranges::mismatch(previous_, text).in2 - text.begin());
    close_to(same);
    for (std::size_t i = same; i < text.size(); ++i) {
      path_.push_back(static_cast<std::uint32_t>(trie_.size()));
      trie_.push_back({static_cast<std::uint8_t>(text[i]), 0, 0, 0});
    }
    previous_ = text;
    return true;
  }
  void finish() { close_to(0); }

 private:
  void close_to(std::size_t depth) {
    for (; path_.size() > depth; path_.pop_back())
      trie_[path_.back()].size = static_cast<std::uint32_t>(trie_.size() - path_.back()) & 0xFFFFFF;
  }

  std::vector<TrieNode>& trie_;
  std::vector<std::uint32_t> path_;  // nodes of the previous text's bytes
  std::string_view previous_;
};

bool is_control(const Tokenizer& tokenizer, TokenId token) {
  if (tokenizer.is_special(token)) return true;
  const std::string_view bytes = tokenizer.bytes(token);
  // Added tokens that look like markup are not ordinary text either.
  if (bytes.empty() || (bytes[0] != '<' && bytes[0] != '[') || !utf8::is_valid(bytes)) return false;
  return tokenizer.special(bytes) == token && tokenizer.first_control(bytes) == token;
}

}  // namespace

Vocabulary::Vocabulary(const Tokenizer& tokenizer) {
  const auto count = static_cast<std::size_t>(tokenizer.size());
  is_ordinary_.resize(count);
  ordinary_mask_.resize((count + 31) / 32);
  reach_ = {.longest = 1, .longest_key = 0};
  offsets_.push_back(0);
  std::vector<std::vector<TokenId>> ids(2 * class_limits.size() + 1);
  for (TokenId token = 0; token < tokenizer.size(); ++token) {
    const std::string_view bytes = tokenizer.bytes(token);
    if (!bytes.empty() && !is_control(tokenizer, token)) {
      is_ordinary_[static_cast<std::size_t>(token)] = true;
      set_bit(ordinary_mask_, token);
      text_ += bytes;
      measure(bytes);
      if (bytes.find_first_of("\",") != std::string_view::npos) tokens_for_keys_.push_back(token);
      const auto quotes = std::ranges::count(bytes, '"');
      if (quotes >= 2) tokens_with_keys_.push_back(token);
      if (quotes >= 3) tokens_with_two_keys_.push_back(token);
      const PlainStart start = plain_start(bytes);
      const bool all_plain = start.bytes == bytes.size() && start.characters <= class_limits.back();
      const auto limit = std::ranges::lower_bound(class_limits, start.characters);
      const std::size_t group = (start.is_word ? 0 : class_limits.size()) +
                                static_cast<std::size_t>(limit - class_limits.begin()) + 1;
      ids[all_plain ? group : 0].push_back(token);
    }
    offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  plain_mask_.resize(mask_words());
  std::vector<TokenId> sorted;
  for (std::size_t group = 0; group < ids.size(); ++group) {
    classes_.emplace_back();
    if (group > 0) {
      classes_.back().max_characters = class_limits[(group - 1) % class_limits.size()];
      classes_.back().is_word = group <= class_limits.size();
    }
    build_class(classes_.back(), ids[group]);
    const auto middle = static_cast<std::ptrdiff_t>(sorted.size());
    sorted.insert(sorted.end(), ids[group].begin(), ids[group].end());
    std::ranges::inplace_merge(sorted, sorted.begin() + middle, by_bytes());
    if (group == 0) continue;
    for (const TokenId id : ids[group])
      classes_.back().by_length.push_back({plain_start(bytes(id)).characters, id});
    std::ranges::sort(classes_.back().by_length, {}, &TokenClass::Sized::characters);
    for (std::size_t i = 0; i < plain_mask_.size(); ++i) plain_mask_[i] |= classes_.back().mask[i];
    if (!ids[group].empty())
      longest_plain_ = std::max(longest_plain_, classes_.back().by_length.back().characters);
  }
  build_trie(trie_, sorted);
  build_tails(ids[0]);
}

void Vocabulary::measure(std::string_view bytes) {
  reach_.longest = std::max(reach_.longest, static_cast<std::uint32_t>(bytes.size()));
  if (std::ranges::count(bytes, '"') < 2) return;
  reach_.longest_key = std::max(reach_.longest_key, static_cast<std::uint32_t>(bytes.size()));
}

void Vocabulary::build_class(TokenClass& token_class, std::vector<TokenId>& ids) {
  std::ranges::sort(ids, by_bytes());
  token_class.mask.resize(mask_words());
  for (const TokenId id : ids) set_bit(token_class.mask, id);
  build_trie(token_class.trie, ids);
}

void Vocabulary::build_trie(std::vector<TrieNode>& trie, std::span<const TokenId> sorted) {
  TrieBuilder builder(trie);
  for (const TokenId id : sorted) {
    if (builder.add(bytes(id))) {
      trie.back().tokens = static_cast<std::uint32_t>(id + 1) & 0x7FFFFFFF;
      continue;
    }
    TrieNode& node = trie.back();
    if (!node.has_group) {
      groups_.push_back({static_cast<TokenId>(node.tokens - 1)});
      node.tokens = static_cast<std::uint32_t>(groups_.size()) & 0x7FFFFFFF;
      node.has_group = 1;
    }
    groups_[node.tokens - 1].push_back(id);
  }
  builder.finish();
}

void Vocabulary::build_tails(const std::vector<TokenId>& ids) {
  struct Tail {
    std::string_view bytes;
    TokenClass::Sized token;
  };
  std::vector<Tail> tails;
  for (const TokenId id : ids) {
    PlainStart start = plain_start(bytes(id));
    if (start.bytes == bytes(id).size()) start = {};  // too long for a class
    tails.push_back({bytes(id).substr(start.bytes), {start.characters, id}});
    tails_.longest = std::max(tails_.longest, static_cast<std::uint32_t>(tails.back().bytes.size()));
  }
  std::ranges::sort(tails, {}, &Tail::bytes);
  TrieBuilder builder(tails_.trie);
  tails_.groups.push_back(0);
  for (const Tail& tail : tails) {
    if (builder.add(tail.bytes)) {
      tails_.trie.back().tokens = static_cast<std::uint32_t>(tails_.groups.size()) & 0x7FFFFFFF;
      tails_.groups.push_back(static_cast<std::uint32_t>(tails_.tokens.size()));
    }
    tails_.tokens.push_back(tail.token);
    ++tails_.groups.back();
  }
  builder.finish();
}

std::vector<TokenId> Vocabulary::beginning_with(std::string_view text) const {
  const std::vector<TrieNode>& trie = classes_[0].trie;
  std::size_t at = 0;
  std::size_t end = trie.size();
  std::size_t depth = 0;
  while (at < end && depth < text.size()) {
    if (trie[at].byte != static_cast<std::uint8_t>(text[depth])) {
      at += trie[at].size;
      continue;
    }
    end = at + trie[at].size;
    if (++depth < text.size()) ++at;
  }
  std::vector<TokenId> found;
  if (depth < text.size()) return found;
  for (; at < end; ++at) for_each_token(trie[at], [&found](TokenId token) { found.push_back(token); });
  return found;
}

std::vector<TokenId> Vocabulary::prefixes_of(std::string_view text) const {
  std::vector<TokenId> found;
  std::size_t depth = 0;
  std::size_t at = 0;
  std::size_t end = trie_.size();
  while (at < end && depth < text.size()) {
    const TrieNode& node = trie_[at];
    if (node.byte != static_cast<std::uint8_t>(text[depth])) {
      at += node.size;
      continue;
    }
    ++depth;
    for_each_token(node, [&found](TokenId token) { found.push_back(token); });
    end = at + node.size;
    ++at;
  }
  return found;
}

std::shared_ptr<const Vocabulary> make_vocabulary(const Tokenizer& tokenizer) {
  return std::make_shared<const Vocabulary>(tokenizer);
}

}  // namespace inferno::grammar
