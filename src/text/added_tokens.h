// Tokens that are found in the text before anything else happens to it: control tokens, and pieces someone
// added to a trained vocabulary.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/token.h"
#include "text/byte_trie.h"

namespace inferno {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool single_word = false;  // only where no letter or digit touches it
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool normalized = false;   // looked for in the normalized text instead of the original
  bool special = false;
};

// Bounds the work per byte of text; real ones are shorter than a hundred bytes. The loaders check it.
inline constexpr std::size_t longest_added_token = 1024;

// True for tokens a user must not be able to write: special ones, and those that look like markup.
bool is_control(const AddedToken& token);

// Stretches of a text that came from a user, ascending, not touching each other.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
};
using Ranges = std::vector<Range>;

// A part of a text: an added token, or what lies between two of them.
struct TextPart {
  Range range;
  std::optional<TokenId> token;
};

// Finds a set of added tokens, leftmost first, the longest of those that begin at the same place.
class AddedTokenMatcher {
 public:
  // `content` of each token is what is looked for.
  explicit AddedTokenMatcher(std::vector<AddedToken> tokens = {});
  bool empty() const { return tokens_.empty(); }
  bool has_control() const { return has_control_; }
  // The parts cover the text. A control token that touches a `user` range is ordinary text.
  std::vector<TextPart> split(std::string_view text, const Ranges& user) const;

 private:
  const AddedToken* longest_at(std::string_view text, std::size_t at, std::size_t& end) const;

  std::vector<AddedToken> tokens_;
  ByteTrie trie_;
  bool has_control_ = false;
};

}  // namespace inferno
