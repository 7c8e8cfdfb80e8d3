// Added tokens: control tokens, and pieces added to a vocabulary after its training. They are matched in the
// text before it is split into words.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "text/models/byte_trie.h"

namespace inferno {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // matches only if no letter or digit is adjacent
  bool lstrip = false;       // includes the white space before it
  bool rstrip = false;       // includes the white space after it
  bool normalized = false;   // matched in the normalized text instead of the original
  bool special = false;
};

// Bounds the work per byte of text; real tokens are shorter than a hundred bytes. The loaders check it.
inline constexpr std::size_t longest_added_token = 1024;

// True for tokens a user must not be able to write: special tokens and tokens that look like markup.
bool is_control(const AddedToken& token);

// Ranges of bytes that came from a user, in ascending order, never adjacent.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
using Ranges = std::vector<Range>;

// A part of a text: an added token, or the text between two added tokens.
struct TextPart {
  Range range;
  std::optional<TokenId> token;
};

// Finds added tokens, leftmost first; of several that begin at the same offset, the longest.
class AddedTokenMatcher {
 public:
  // Matches the `content` of each token.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens = {});
  bool empty() const { return tokens_.empty(); }
  bool has_control() const { return has_control_; }
  // The parts cover the text. A control token that overlaps a `user` range is ordinary text.
  std::vector<TextPart> split(std::string_view text, const Ranges& user) const;
  // The first token in the text.
  std::optional<TokenId> first(std::string_view text) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;
  bool has_control_ = false;
};

}  // namespace inferno
