// F15: any text through the tokenizer and back, any tokens through the stream, any bytes through the
// splitter.
#include <algorithm>
#include <array>

#include "base/utf8.h"
#include "fuzz/guard.h"
#include "text/tokenizer.h"
#include "text/tokenizer_scene.h"

namespace {

using namespace inferno;

const std::string added_tokens = R"([{"id":261,"content":"<|end|>","special":true,"normalized":false},
    {"id":262,"content":"  ","normalized":false},{"id":263,"content":"<x>","rstrip":true,"lstrip":true,"single_word":true}])";

const Tokenizer& subject(unsigned which) {
  static const std::array<std::unique_ptr<Tokenizer>, 3> all = {
      parse_tokenizer(made_up_json({.added_tokens = added_tokens}), fuzz::origin),
      parse_tokenizer(made_up_json({.decoder = R"({"type":"Sequence","decoders":[{"type":"ByteLevel"}]})"}),
                      fuzz::origin),
      parse_tokenizer(
          made_up_json(
              {.decoder = R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"Ġ"},
          "content":" "},{"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
               .added_tokens = added_tokens}),
          fuzz::origin)};
  return *all[which % all.size()];
}

void require(bool condition) {
  if (!condition) std::abort();
}

std::string stream(const Tokenizer& tokenizer, std::span<const TokenId> ids, SpecialTokens special) {
  Detokenizer detokenizer(tokenizer, special);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = detokenizer.push(id);
    require(!utf8::first_invalid(piece));
    text += piece;
  }
  return text + detokenizer.finish();
}

void round_trip(std::string_view text, std::size_t cut) {
  const Tokenizer& tokenizer = subject(0);
  const std::vector<TokenId> ids = tokenizer.encode(text);
  require(tokenizer.decode(ids) == text);
  for (const TokenId id : ids) require(!tokenizer.is_special(id));
  const std::vector<TextSpan> spans = {{text.substr(0, cut), Origin::user},
                                       {text.substr(cut), Origin::trusted}};
  for (const TokenId id : tokenizer.encode_spans(spans)) require(id >= 0 && id < tokenizer.size());
}

void any_tokens(std::span<const std::uint8_t> data, unsigned which) {
  const Tokenizer& tokenizer = subject(which);
  std::vector<TokenId> ids;
  for (std::size_t i = 0; i + 1 < data.size(); i += 2)
    ids.push_back((data[i] * 256 + data[i + 1]) % tokenizer.size());
  for (const auto special : {SpecialTokens::keep, SpecialTokens::skip}) {
    const std::string text = tokenizer.decode(ids, special);
    require(!utf8::first_invalid(text));
    require(stream(tokenizer, ids, special) == text);
  }
}

void any_bytes(std::string_view bytes, std::size_t step) {
  for (const auto replacement : {utf8::Replacement::per_character, utf8::Replacement::per_byte}) {
    std::string whole(bytes);
    std::string held;
    std::string text;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      held += bytes.substr(at, step);
      const std::string decided = utf8::take_decided(held, replacement);
      require(!utf8::first_invalid(decided));
      require(held.size() < 4);
      text += decided;
    }
    require(text + utf8::take_all(held, replacement) == utf8::take_all(whole, replacement));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::string_view text = fuzz::text(data + 2, size - 2);
  any_tokens(std::span(data + 2, size - 2), data[0]);
  any_bytes(text, data[1] % 7 + 1U);
  if (utf8::first_invalid(text)) return 0;
  std::size_t cut = std::min<std::size_t>(data[1], text.size());
  while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) ++cut;
  round_trip(text, cut);
  return 0;
}
