// The vocabulary of a tokenizer as tries of bytes, built once for a model and shared by all its matchers.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "grammar/automaton/explorer.h"
#include "text/tokenizer.h"

namespace inferno::grammar {

// A trie laid flat in depth-first order: the children of node i begin at i + 1, and skipping a subtree is one
// addition.
struct TrieNode {
  std::uint32_t byte : 8;
  std::uint32_t size : 24;  // nodes of the subtree, itself included
  // 0: no token ends here. Otherwise one more than the token, or than the index of a group of several.
  std::uint32_t tokens : 31;
  std::uint32_t has_group : 1;
};

// The plain characters (characters.h) at the beginning of a token.
struct PlainStart {
  std::uint32_t characters = 0;
  std::uint32_t bytes = 0;
  bool is_word = true;
};

// Tokens of one kind. Most consist of plain characters, and many of them of word characters only
// (characters.h); they are sorted by their number of characters, so that a state that surely accepts them
// takes `mask` and walks no trie.
struct TokenClass {
  std::uint32_t max_characters = 0;  // 0: the tokens may contain anything
  bool is_word = false;
  std::vector<TrieNode> trie;
  std::vector<std::uint32_t> mask;  // [ceil(vocab / 32)]
  struct Sized {
    std::uint32_t characters = 0;
    TokenId token = 0;
  };
  std::vector<Sized> by_length;  // of plain characters, shortest first
};

// All other tokens, by what follows their plain characters: in a state that those lead back to, only the rest
// decides, and many tokens share it.
struct TokenTails {
  std::vector<TrieNode> trie;
  std::vector<TokenClass::Sized> tokens;  // with the number of plain characters before the tail
  std::vector<std::uint32_t> groups;
  std::uint32_t longest = 0;  // bytes

  std::span<const TokenClass::Sized> tokens_at(const TrieNode& node) const {
    return std::span(tokens).subspan(groups[node.tokens - 1], groups[node.tokens] - groups[node.tokens - 1]);
  }
};

class Vocabulary {
 public:
  explicit Vocabulary(const Tokenizer& tokenizer);

  int size() const { return static_cast<int>(is_ordinary_.size()); }
  std::size_t mask_words() const { return (is_ordinary_.size() + 31) / 32; }
  // Neither a control token nor an unused id: what text consists of.
  bool is_ordinary(TokenId token) const {
    return token >= 0 && token < size() && is_ordinary_[static_cast<std::size_t>(token)];
  }
  // Empty for tokens that are not ordinary.
  std::string_view bytes(TokenId token) const {
    const auto at = static_cast<std::size_t>(token);
    return std::string_view(text_).substr(offsets_[at], offsets_[at + 1] - offsets_[at]);
  }
  const std::vector<std::uint32_t>& ordinary_mask() const { return ordinary_mask_; }
  // The tokens of all classes but the first.
  const std::vector<std::uint32_t>& plain_mask() const { return plain_mask_; }
  std::uint32_t longest_plain() const { return longest_plain_; }  // characters
  // Of all ordinary tokens.
  const std::vector<TrieNode>& trie() const { return trie_; }
  std::span<const TokenClass> classes() const { return classes_; }
  const TokenTails& tails() const { return tails_; }
  // Several tokens may have the same bytes. For a node of any trie but that of tails.
  template <typename Use>
  void for_each_token(const TrieNode& node, Use use) const {
    if (node.tokens == 0) return;
    if (!node.has_group) return use(static_cast<TokenId>(node.tokens - 1));
    for (const TokenId token : groups_[node.tokens - 1]) use(token);
  }
  // Tokens with at least two quotes: they may contain a whole key.
  std::span<const TokenId> tokens_with_keys() const { return tokens_with_keys_; }
  // Tokens with at least three quotes: they may complete a key and contain another one.
  std::span<const TokenId> tokens_with_two_keys() const { return tokens_with_two_keys_; }
  // Tokens that may lead to a key: with a quote or a comma.
  std::span<const TokenId> tokens_for_keys() const { return tokens_for_keys_; }
  // Tokens that begin with a text that is not plain.
  std::vector<TokenId> beginning_with(std::string_view text) const;
  TokenReach reach() const { return reach_; }
  // Tokens that the text begins with, shortest first.
  std::vector<TokenId> prefixes_of(std::string_view text) const;

 private:
  struct Measured {
    TokenId id = 0;
    PlainStart start;
  };
  void build_class(TokenClass& token_class, const std::vector<Measured>& tokens);
  void build_trie(std::vector<TrieNode>& trie, std::span<const TokenId> sorted);
  void build_tails(const std::vector<Measured>& tokens);
  void measure(TokenId token, std::string_view bytes);

  std::vector<bool> is_ordinary_;
  std::string text_;  // of all tokens, one after the other
  std::vector<std::uint32_t> offsets_;
  std::vector<std::uint32_t> ordinary_mask_;
  std::vector<TokenClass> classes_;
  TokenTails tails_;
  std::vector<TrieNode> trie_;
  std::vector<std::uint32_t> plain_mask_;
  std::uint32_t longest_plain_ = 0;
  std::vector<std::vector<TokenId>> groups_;  // of tokens with the same bytes
  std::vector<TokenId> tokens_with_keys_, tokens_with_two_keys_, tokens_for_keys_;
  TokenReach reach_;
};

std::shared_ptr<const Vocabulary> make_vocabulary(const Tokenizer& tokenizer);

}  // namespace inferno::grammar
