// F6: tokenizer.json. A loaded tokenizer must encode and decode text, or fail with an Error.
#include "base/utf8.h"
#include "fuzz/guard.h"
#include "text/tokenizer.h"

namespace {

using namespace inferno;

// A loaded tokenizer may still find that its pattern is too slow or that a character has no token.
void use(const Tokenizer& tokenizer) {
  constexpr std::string_view sample =
      "Hello  wörld 123\n<s>日本 \xF0\x9F\x98\x80'll aaaaaaaaaaaaaaaaaaaaaaaa";
  try {
    for (const auto& ids : {tokenizer.encode(sample), tokenizer.encode_with_special(sample)}) {
      const std::string text = tokenizer.decode(ids);
      if (utf8::first_invalid(text)) std::abort();
      Detokenizer detokenizer(tokenizer);
      std::string streamed;
      for (const TokenId id : ids) streamed += detokenizer.push(id);
      if (streamed + detokenizer.finish() != text) std::abort();
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported && error.kind() != ErrorKind::corrupt) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::guard([&] { use(*parse_tokenizer(std::string(fuzz::text(data, size)), fuzz::origin)); });
  return 0;
}
