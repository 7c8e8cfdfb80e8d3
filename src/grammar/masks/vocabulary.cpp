#include "grammar/masks/vocabulary.h"

#include <algorithm>
#include <array>
#include <numeric>

#include "base/utf8.h"
#include "grammar/automaton/characters.h"

namespace inferno::grammar {
namespace {

// Characters of the tokens of a class at most; for words and for other plain tokens.
constexpr std::array<std::uint32_t, 4> class_limits = {2, 8, 32, 1024};

PlainStart plain_start(std::string_view bytes) {
  PlainStart start;
  while (start.bytes < bytes.size()) {
    auto code = static_cast<char32_t>(static_cast<std::uint8_t>(bytes[start.bytes]));
    int length = 1;
    if (code >= 0x80) {
      const auto character = utf8::decode(bytes, start.bytes);
      code = character.code;
      length = character.length;
    }
    if (length == 0 || !is_plain(code)) break;
    start.is_word = start.is_word && is_word(code);
    start.bytes += static_cast<std::uint32_t>(length);
    ++start.characters;
  }
  return start;
}

// The index of the class of tokens that are nothing but plain characters, 0 for all others.
std::size_t class_of(const PlainStart& start, std::size_t bytes) {
  if (start.bytes != bytes || start.characters > class_limits.back()) return 0;
  const auto limit = std::ranges::lower_bound(class_limits, start.characters);
  return (start.is_word ? 0 : class_limits.size()) + static_cast<std::size_t>(limit - class_limits.begin()) +
         1;
}

// The first eight bytes as a number, so that comparing numbers is comparing bytes.
std::uint64_t head_of(std::string_view text) {
  std::uint64_t head = 0;
  for (std::size_t i = 0; i < sizeof(head); ++i)
    head = head << 8 | (i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0u);
  return head;
}

// Sorts by the bytes of texts. Their heads settle most pairs, without a look at the texts.
template <typename Item, typename TextOf>
void sort_by_text(std::vector<Item>& items, TextOf text_of) {
  struct Keyed {
    std::uint64_t head = 0;
    Item item;
  };
  std::vector<Keyed> keyed;
  keyed.reserve(items.size());
  for (const Item& item : items) keyed.push_back({head_of(text_of(item)), item});
  std::ranges::sort(keyed, {}, &Keyed::head);
  for (auto first = keyed.begin(); first != keyed.end();) {
    const auto last = std::find_if(first, keyed.end(), [&](const Keyed& k) { return k.head != first->head; });
    if (last - first > 1)
      std::ranges::sort(first, last, {}, [&](const Keyed& one) { return text_of(one.item); });
    first = last;
  }
  std::ranges::transform(keyed, items.begin(), &Keyed::item);
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
  plain_mask_.resize(mask_words());
  reach_ = {.longest = 1, .longest_key = 0};
  offsets_.reserve(count + 1);
  offsets_.push_back(0);
  std::vector<TokenId> sorted;
  for (TokenId token = 0; token < tokenizer.size(); ++token) {
    const std::string_view bytes = tokenizer.bytes(token);
    if (!bytes.empty() && !is_control(tokenizer, token)) {
      is_ordinary_[static_cast<std::size_t>(token)] = true;
      set_bit(ordinary_mask_, token);
      text_ += bytes;
      measure(token, bytes);
      sorted.push_back(token);
    }
    offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
  }
  sort_by_text(sorted, [this](TokenId token) { return bytes(token); });
  build_trie(trie_, sorted);

  std::vector<std::vector<Measured>> tokens(2 * class_limits.size() + 1);
  for (const TokenId token : sorted) {
    const PlainStart start = plain_start(bytes(token));
    tokens[class_of(start, bytes(token).size())].push_back({token, start});
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    TokenClass& token_class = classes_.emplace_back();
    if (i > 0) {
      token_class.max_characters = class_limits[(i - 1) % class_limits.size()];
      token_class.is_word = i <= class_limits.size();
    }
    build_class(token_class, tokens[i]);
  }
  build_tails(tokens[0]);
}

void Vocabulary::measure(TokenId token, std::string_view bytes) {
  const auto length = static_cast<std::uint32_t>(bytes.size());
  reach_.longest = std::max(reach_.longest, length);
  const auto quotes = std::ranges::count(bytes, '"');
  if (quotes >= 1 || bytes.find(',') != std::string_view::npos) tokens_for_keys_.push_back(token);
  if (quotes < 2) return;
  reach_.longest_key = std::max(reach_.longest_key, length);
  tokens_with_keys_.push_back(token);
  if (quotes >= 3) tokens_with_two_keys_.push_back(token);
}

// `tokens` are sorted by their bytes.
void Vocabulary::build_class(TokenClass& token_class, const std::vector<Measured>& tokens) {
  token_class.mask.resize(mask_words());
  std::vector<TokenId> ids;
  ids.reserve(tokens.size());
  for (const Measured& token : tokens) {
    set_bit(token_class.mask, token.id);
    ids.push_back(token.id);
  }
  build_trie(token_class.trie, ids);
  if (token_class.max_characters == 0) return;
  for (std::size_t i = 0; i < plain_mask_.size(); ++i) plain_mask_[i] |= token_class.mask[i];
  // By counting: there are few lengths.
  std::vector<std::uint32_t> begins(token_class.max_characters + 2);
  for (const Measured& token : tokens) ++begins[token.start.characters + 1];
  std::partial_sum(begins.begin(), begins.end(), begins.begin());
  token_class.by_length.resize(tokens.size());
  for (const Measured& token : tokens)
    token_class.by_length[begins[token.start.characters]++] = {token.start.characters, token.id};
  if (!tokens.empty()) longest_plain_ = std::max(longest_plain_, token_class.by_length.back().characters);
}

void Vocabulary::build_trie(std::vector<TrieNode>& trie, std::span<const TokenId> sorted) {
  std::size_t total = 0;
  for (const TokenId id : sorted) total += bytes(id).size();
  trie.reserve(total);
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

void Vocabulary::build_tails(const std::vector<Measured>& tokens) {
  struct Tail {
    std::string_view bytes;
    TokenClass::Sized token;
  };
  std::vector<Tail> tails;
  tails.reserve(tokens.size());
  std::size_t total = 0;
  for (const auto& [id, start] : tokens) {
    const bool is_too_long = start.bytes == bytes(id).size();  // for a class
    const std::string_view tail = bytes(id).substr(is_too_long ? 0 : start.bytes);
    tails.push_back({tail, {is_too_long ? 0 : start.characters, id}});
    tails_.longest = std::max(tails_.longest, static_cast<std::uint32_t>(tail.size()));
    total += tail.size();
  }
  sort_by_text(tails, [](const Tail& tail) { return tail.bytes; });
  tails_.trie.reserve(total);
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
