// What all tokenizers share: the three kinds of encoding, and decoding, at once or as a stream.
#include "text/tokenizer.h"

#include <algorithm>
#include <limits>

#include "base/utf8.h"

namespace inferno {
namespace {

// Appends the bytes of one token; subtracts the spaces dropped here from `style`.
void append_token(std::string& to, std::string_view bytes, DecodeStyle& style, bool first) {
  if (first && style.first_token_without_spaces) {
    std::copy_if(bytes.begin(), bytes.end(), std::back_inserter(to), [](char c) { return c != ' '; });
    return;
  }
  while (style.leading_spaces_to_drop > 0 && bytes.starts_with(' ')) {
    bytes.remove_prefix(1);
    --style.leading_spaces_to_drop;
  }
  if (!bytes.empty()) style.leading_spaces_to_drop = 0;
  to += bytes;
}

}  // namespace

std::vector<TokenId> Tokenizer::encode_spans(std::span<const TextSpan> spans) const {
  return *encode_within(spans, std::numeric_limits<std::size_t>::max());
}

std::vector<TokenId> Tokenizer::encode(std::string_view text) const {
  const TextSpan span{.text = text, .origin = Origin::user};
  return encode_spans({&span, 1});
}

std::vector<TokenId> Tokenizer::encode_prompt(std::string_view rendered_template) const {
  const TextSpan span{.text = rendered_template, .origin = Origin::trusted};
  return encode_spans({&span, 1});
}

std::vector<TokenId> Tokenizer::encode_with_special(std::string_view text) const {
  return add_special(encode_prompt(text));
}

std::string Tokenizer::decode(std::span<const TokenId> ids, SpecialTokens special) const {
  DecodeStyle style = decode_style();
  std::string joined;
  bool first = true;
  for (const TokenId id : ids) {
    const std::string_view added = bytes(id);
    if (special == SpecialTokens::skip && is_special(id)) continue;
    append_token(joined, added, style, first);
    first = false;
  }
  return utf8::take_all(joined, style.replacement);
}

std::string Detokenizer::push(TokenId token) {
  const std::string_view added = tokenizer_.bytes(token);
  if (special_ == SpecialTokens::skip && tokenizer_.is_special(token)) return {};
  append_token(held_, added, style_, first_token_);
  first_token_ = false;
  return utf8::take_decided(held_, style_.replacement);
}

void Detokenizer::follow(std::span<const TokenId> text) {
  // Blanks are dropped at the beginning of a text only, and a character has few bytes, so that a few tokens
  // with visible text leave the same behind as all of them.
  constexpr int enough = 16;
  std::size_t begin = text.size();
  for (int found = 0; begin > 0 && found < enough; --begin) {
    const TokenId token = text[begin - 1];
    if (!tokenizer_.is_special(token) && !trimmed(tokenizer_.bytes(token)).empty()) ++found;
  }
  for (const TokenId token : text.subspan(begin)) push(token);
}

std::string Detokenizer::finish() {
  style_ = tokenizer_.decode_style();
  first_token_ = true;
  return utf8::take_all(held_, style_.replacement);
}

}  // namespace inferno
