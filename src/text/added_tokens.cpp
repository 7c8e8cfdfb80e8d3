#include "text/added_tokens.h"

#include <algorithm>

#include "base/utf8.h"
#include "text/characters.h"

namespace inferno {
namespace {

bool is_separate_word(std::string_view text, std::size_t begin, std::size_t end) {
  const bool left = begin > 0 && is_word_part(utf8::decode(text, utf8::previous(text, begin)).code);
  const bool right = end < text.size() && is_word_part(utf8::decode(text, end).code);
  return !left && !right;
}

std::size_t skip_space_left(std::string_view text, std::size_t at, std::size_t not_before) {
  while (at > not_before) {
    const std::size_t before = utf8::previous(text, at);
    if (!is_white_space(utf8::decode(text, before).code)) break;
    at = before;
  }
  return at;
}

std::size_t skip_space_right(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const utf8::Character character = utf8::decode(text, at);
    if (!is_white_space(character.code)) break;
    at += static_cast<std::size_t>(character.length);
  }
  return at;
}

bool overlaps(const Ranges& ranges, std::size_t begin, std::size_t end) {
  const auto after = std::ranges::upper_bound(ranges, begin, {}, &Range::end);
  return after != ranges.end() && after->begin < end;
}

}  // namespace

bool is_control(const AddedToken& token) {
  const std::string_view text = token.content;
  const bool markup =
      (text.starts_with('<') && text.ends_with('>')) || (text.starts_with('[') && text.ends_with(']'));
  return token.special || markup;
}

AddedTokenMatcher::AddedTokenMatcher(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    const AddedToken& token = tokens_[i];
    trie_.add(token.content, static_cast<std::int32_t>(i));
    has_control_ = has_control_ || is_control(token);
  }
}

const AddedToken* AddedTokenMatcher::longest_at(std::string_view text, std::size_t at,
                                                std::size_t& end) const {
  const AddedToken* found = nullptr;
  ByteTrie::Node node = ByteTrie::root;
  for (std::size_t i = at; i < text.size(); ++i) {
    node = trie_.step(node, text[i]);
    if (node == ByteTrie::nowhere) break;
    if (trie_.value(node) >= 0) {
      found = &tokens_[static_cast<std::size_t>(trie_.value(node))];
      end = i + 1;
    }
  }
  return found;
}

std::optional<TokenId> AddedTokenMatcher::first(std::string_view text) const {
  for (std::size_t at = 0; at < text.size() && !empty(); ++at) {
    std::size_t end = 0;
    if (const AddedToken* token = longest_at(text, at, end)) return token->id;
  }
  return std::nullopt;
}

std::vector<TextPart> AddedTokenMatcher::split(std::string_view text, const Ranges& user) const {
  std::vector<TextPart> parts;
  std::size_t done = 0;
  for (std::size_t at = 0; at < text.size() && !empty();) {
    std::size_t end = 0;
    const AddedToken* token = longest_at(text, at, end);
    if (token == nullptr || (is_control(*token) && overlaps(user, at, end))) {
      ++at;
      continue;
    }
    if (token->single_word && !is_separate_word(text, at, end)) {
      at = end;
      continue;
    }
    // White space that the previous token already includes stays with that token.
    const std::size_t begin = std::max(token->lstrip ? skip_space_left(text, at, done) : at, done);
    at = end;
    if (token->rstrip) end = skip_space_right(text, end);
    if (begin > done) parts.push_back({.range = {.begin = done, .end = begin}, .token = {}});
    parts.push_back({.range = {.begin = begin, .end = end}, .token = token->id});
    done = std::max(end, done);
  }
  if (done < text.size()) parts.push_back({.range = {.begin = done, .end = text.size()}, .token = {}});
  return parts;
}

}  // namespace inferno
