// Text to tokens and back. Immutable after loading, hence safe to share between threads.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/token.h"
#include "base/utf8.h"

namespace inferno {

// Where a stretch of a prompt came from. Only trusted text may name a control token.
enum class Origin { trusted, user };

struct TextSpan {
  std::string_view text;
  Origin origin = Origin::trusted;
};

enum class SpecialTokens { keep, skip };

// How the pieces of a text join.
struct DecodeStyle {
  int leading_spaces_to_drop = 0;           // at the beginning of the whole text
  bool first_token_without_spaces = false;  // the space that stands for "a word begins" is not text there
  utf8::Replacement replacement = utf8::Replacement::per_character;
};

// Text must be UTF-8 everywhere below: Error{invalid_request} names the first byte that is not.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The spans are one text: words form across their borders. A control token is recognised only where it
  // lies in trusted spans, so that what a user typed cannot forge one. "Control" are the special tokens and
  // other added tokens that look like markup (<tool_call>, [INST]); added tokens that are plain text, such
  // as runs of spaces, are recognised everywhere.
  virtual std::vector<TokenId> encode_spans(std::span<const TextSpan> spans) const = 0;

  // What a user wrote: control tokens are ordinary characters.
  std::vector<TokenId> encode(std::string_view text) const;
  // What a template rendered: added tokens are recognised as Hugging Face does.
  std::vector<TokenId> encode_prompt(std::string_view rendered_template) const;
  // encode_prompt, then add_special: Hugging Face's default call.
  std::vector<TokenId> encode_with_special(std::string_view text) const;
  // What the post-processor puts around an encoded text (BOS, EOS); often nothing.
  virtual std::vector<TokenId> add_special(std::vector<TokenId> ids) const = 0;

  // Valid UTF-8 always. Error{invalid_request} for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, SpecialTokens special = SpecialTokens::keep) const;

  // What a token adds to the text; may end inside a UTF-8 character. Empty for ids in a hole of the
  // vocabulary, Error{invalid_request} for ids outside it.
  virtual std::string_view bytes(TokenId token) const = 0;
  virtual DecodeStyle decode_style() const { return {}; }

  virtual bool is_special(TokenId token) const = 0;
  // The id of an added token, by its exact text.
  virtual std::optional<TokenId> special(std::string_view text) const = 0;
  // One more than the largest id.
  virtual int size() const = 0;
  // From now on ids below `vocab` that are not among the tokenizer's own are holes: models often have more
  // rows than there are tokens, and may draw one of them.
  virtual void pad_to(int vocab) = 0;
  virtual std::optional<TokenId> bos() const = 0;
  // Every token that ends a reply, the main one first; empty when the files name none.
  virtual std::span<const TokenId> end_tokens() const = 0;
};

// From a model directory (tokenizer.json, and tokenizer_config.json, special_tokens_map.json,
// generation_config.json where present) or from a tokenizer.json alone. Error{not_found} when there is none,
// Error{corrupt} when a file contradicts itself, Error{unsupported} naming a component we do not have.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model);

// The same from the text of a tokenizer.json; `name` stands in error messages.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string tokenizer_json, std::string_view name);

// Joins tokens into text, holding back an unfinished UTF-8 character until it is complete or cannot be any
// more. The pieces together are exactly Tokenizer::decode of all tokens.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::keep)
      : tokenizer_(tokenizer), special_(special), style_(tokenizer.decode_style()) {}
  std::string push(TokenId token);
  std::string finish();

 private:
  const Tokenizer& tokenizer_;
  SpecialTokens special_;
  DecodeStyle style_;  // counts down the spaces still to be dropped
  bool first_token_ = true;
  std::string held_;  // bytes of a character that may still be completed
};

}  // namespace inferno
