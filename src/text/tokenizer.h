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

// Where a part of a prompt came from. Only trusted text may contain control tokens.
enum class Origin { trusted, user };

struct TextSpan {
  std::string_view text;
  Origin origin = Origin::trusted;
};

enum class SpecialTokens { keep, skip };

// How decoded tokens are joined.
struct DecodeStyle {
  int leading_spaces_to_drop = 0;           // at the beginning of the whole text
  bool first_token_without_spaces = false;  // drop its spaces, which only mark the beginning of a word
  utf8::Replacement replacement = utf8::Replacement::per_character;
};

// Text must be UTF-8 everywhere below: Error{invalid_request} names the first byte that is not.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The spans are one text: words form across their boundaries. A control token is recognised only inside
  // trusted spans, so that a user cannot forge one. Control tokens are the special tokens and other added
  // tokens that look like markup (<tool_call>, [INST]); added tokens that are plain text, such as runs of
  // spaces, are recognised everywhere.
  std::vector<TokenId> encode_spans(std::span<const TextSpan> spans) const;
  // The same; nullopt if there are more than `max_tokens`. Takes no more time for a text that is much too
  // long than for one that fits.
  virtual std::optional<std::vector<TokenId>> encode_within(std::span<const TextSpan> spans,
                                                            std::size_t max_tokens) const = 0;
  // Bytes of text that one token may stand for; 0: any number.
  virtual std::size_t max_token_bytes() const { return 0; }
  // The first control token that the text spells, if any.
  virtual std::optional<TokenId> first_control(std::string_view text) const = 0;

  // Encodes a user's text: control tokens are ordinary characters.
  std::vector<TokenId> encode(std::string_view text) const;
  // Encodes the output of a template: added tokens are recognised, as in Hugging Face's tokenizers.
  std::vector<TokenId> encode_prompt(std::string_view rendered_template) const;
  // encode_prompt, then add_special: Hugging Face's default call.
  std::vector<TokenId> encode_with_special(std::string_view text) const;
  // Adds the tokens of the post-processor (BOS, EOS); often none.
  virtual std::vector<TokenId> add_special(std::vector<TokenId> ids) const = 0;

  // Always valid UTF-8. Error{invalid_request} for an id outside the vocabulary.
  std::string decode(std::span<const TokenId> ids, SpecialTokens special = SpecialTokens::keep) const;

  // The bytes a token adds to the text; may end inside a UTF-8 character. Empty for unused ids,
  // Error{invalid_request} for ids outside the vocabulary.
  virtual std::string_view bytes(TokenId token) const = 0;
  virtual DecodeStyle decode_style() const { return {}; }

  virtual bool is_special(TokenId token) const = 0;
  // The id of an added token, by its exact text.
  virtual std::optional<TokenId> special(std::string_view text) const = 0;
  // One more than the largest id.
  virtual int size() const = 0;
  // From now on, ids from size() to `vocab` are unused ids with empty text: models often have more output
  // rows than the tokenizer has tokens, and may sample one of those rows.
  virtual void pad_to(int vocab) = 0;
  virtual std::optional<TokenId> bos() const = 0;
  // Every token that ends a reply, the main one first; empty if the files name none.
  virtual std::span<const TokenId> end_tokens() const = 0;
};

// Loads a model directory (tokenizer.json and, if present, tokenizer_config.json, special_tokens_map.json and
// generation_config.json) or a tokenizer.json alone. Error{not_found} if there is none, Error{corrupt} if a
// file contradicts itself, Error{unsupported} with the name of an unknown component.
std::unique_ptr<Tokenizer> load_tokenizer(const std::filesystem::path& model);

// The same from the text of a tokenizer.json; `name` is used in error messages.
std::unique_ptr<Tokenizer> parse_tokenizer(std::string tokenizer_json, std::string_view name);

// Decodes a stream of tokens. Holds back an unfinished UTF-8 character until it is complete or known to be
// invalid. The concatenated pieces equal Tokenizer::decode() of all tokens.
class Detokenizer {
 public:
  explicit Detokenizer(const Tokenizer& tokenizer, SpecialTokens special = SpecialTokens::keep)
      : tokenizer_(tokenizer), special_(special), style_(tokenizer.decode_style()) {}
  std::string push(TokenId token);
  std::string finish();
  // As if the tokens of a text had been pushed that the next ones continue, and their text dropped.
  void follow(std::span<const TokenId> text);
  std::size_t held() const { return held_.size(); }  // bytes

 private:
  const Tokenizer& tokenizer_;
  SpecialTokens special_;
  DecodeStyle style_;  // with the number of spaces still to be dropped
  bool first_token_ = true;
  std::string held_;  // bytes of an unfinished character
};

}  // namespace inferno
