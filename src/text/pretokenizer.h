// Splits text into the pieces within which tokens are formed: the pre_tokenizer of a tokenizer.json.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/regex/regex.h"

namespace inferno {

// GPT-2's words, which a ByteLevel pre-tokenizer splits by unless told otherwise.
inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

// What happens to the parts that a pattern matches.
enum class SplitBehavior { removed, isolated, merged_with_previous, merged_with_next, contiguous };
enum class CharacterKind { numeric, punctuation, white_space };
enum class PrependScheme { always, first, never };

namespace pretokenize {

struct ByPattern {
  std::shared_ptr<const Regex> pattern;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;  // the pattern describes the pieces instead of the separators
};
struct ByText {
  std::string text;
  SplitBehavior behavior = SplitBehavior::isolated;
  bool invert = false;
};
struct ByCharacter {
  CharacterKind kind = CharacterKind::numeric;
  SplitBehavior behavior = SplitBehavior::isolated;
};
struct AddPrefixSpace {};  // unless the piece begins with one
struct WriteBytes {};      // into GPT-2's byte alphabet, if a later step works on it
struct Metaspace {
  std::string replacement;  // replaces a space: "▁"
  PrependScheme prepend = PrependScheme::always;
  bool split = true;
};

}  // namespace pretokenize

using PreTokenizerStep =
    std::variant<pretokenize::ByPattern, pretokenize::ByText, pretokenize::ByCharacter,
                 pretokenize::AddPrefixSpace, pretokenize::WriteBytes, pretokenize::Metaspace>;

class PieceSink {
 public:
  virtual ~PieceSink() = default;
  virtual void take(std::string_view piece) = 0;  // never empty
  // True if no further pieces are needed.
  bool is_full() const { return is_full_; }

 protected:
  bool is_full_ = false;
};

struct Piece {
  std::string_view text;
  bool at_start = false;  // the piece begins the whole text
};

class PreTokenizer {
 public:
  PreTokenizer() = default;
  // `read_bytes`: the text is in the byte alphabet after the last step and the model wants bytes.
  explicit PreTokenizer(std::vector<PreTokenizerStep> steps, bool read_bytes = false)
      : steps_(std::move(steps)), read_bytes_(read_bytes) {}
  void run(Piece piece, RegexScratch& scratch, PieceSink& sink) const;
  // Whether some text may be in no piece.
  bool drops_text() const;

 private:
  friend class PreTokenizerRun;
  std::vector<PreTokenizerStep> steps_;
  bool read_bytes_ = false;
};

}  // namespace inferno
