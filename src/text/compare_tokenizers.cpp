#include "text/compare_tokenizers.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/utf8.h"

namespace inferno {
namespace {

constexpr std::size_t tokens_at_once = 200;
constexpr int long_texts = 2000;
constexpr int tokens_of_a_text = 12;

bool differ(const Tokenizer& a, const Tokenizer& b, std::string_view text) {
  return a.encode(text) != b.encode(text) || a.encode_with_special(text) != b.encode_with_special(text);
}

// One line for each: they do not merge across the end of a line, and a call has its price.
std::optional<std::string> different_one(const Tokenizer& a, const Tokenizer& b,
                                         const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) all += text + '\n';
  if (!differ(a, b, all)) return std::nullopt;
  const auto found = std::ranges::find_if(texts, [&](const std::string& text) { return differ(a, b, text); });
  return found == texts.end() ? all : *found;
}

// Small, and the same on every machine.
class Dice {
 public:
  TokenId below(int limit) {
    state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<TokenId>((state_ >> 33) % static_cast<std::uint64_t>(limit));
  }

 private:
  std::uint64_t state_ = 1;
};

}  // namespace

std::optional<std::string> first_difference(const Tokenizer& original, const Tokenizer& copy) {
  std::vector<std::string> some;
  for (TokenId id = 0; id < original.size(); ++id) {
    const std::string_view bytes = original.bytes(id);
    if (bytes != copy.bytes(id)) return std::string(bytes);
    const bool plain = !bytes.empty() && !utf8::first_invalid(bytes) && !original.special(bytes);
    if (plain) some.emplace_back(bytes);
    if (some.size() < tokens_at_once && id + 1 < original.size()) continue;
    if (auto text = different_one(original, copy, some)) return text;
    some.clear();
  }
  constexpr std::array<std::string_view, 6> written = {
      "",
      "The quick brown fox, aged 12345, doesn't jump.\n\n  Twice!\t\r\n",
      "  two spaces  ",
      "日本語の文章とemoji 🦙🦙",
      "e\xCC\x81t\xC3\xA9 ÜBER straße ﬁ",
      "for (int i = 0; i < 10; ++i) {\n\treturn x->y;\n}"};
  for (const std::string_view text : written) {
    if (differ(original, copy, text)) return std::string(text);
  }
  Dice dice;
  for (int i = 0; i < long_texts; ++i) {
    std::vector<TokenId> ids;
    for (int j = 0; j < tokens_of_a_text; ++j) {
      const TokenId id = dice.below(original.size());
      if (!original.special(original.bytes(id))) ids.push_back(id);
    }
    const std::string text = original.decode(ids);
    if (differ(original, copy, text)) return text;
  }
  return std::nullopt;
}

std::optional<std::string> first_control_difference(const Tokenizer& original, const Tokenizer& copy) {
  for (TokenId id = 0; id < original.size(); ++id) {
    const std::string token(original.bytes(id));
    if (!original.special(token)) continue;
    const std::string text = token + "One. " + token + " Two " + token + token + "\n" + token;
    if (differ(original, copy, text)) return text;
  }
  return std::nullopt;
}

}  // namespace inferno
