// Follows a constraint through tokens that the fuzzer chooses, and checks every mask on the way.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fuzz/guard.h"
#include "grammar/matcher.h"
#include "text/tokenizer_scene.h"

namespace inferno::fuzz {

inline void must_hold(bool condition) {
  if (!condition) std::abort();
}

// All bytes, and tokens that cross the borders of JSON's values, of keys and of characters.
inline std::shared_ptr<const grammar::Vocabulary> small_vocabulary() {
  static const std::unique_ptr<Tokenizer> tokenizer = [] {
    std::string vocab;
    int id = 0;
    const auto add = [&](std::string_view bytes) {
      std::string piece;
      for (const char c : byte_alphabet::write(bytes)) {
        if (c == '"' || c == '\\') piece += '\\';
        piece += c;
      }
      vocab += fmt::format("{}\"{}\":{}", id == 0 ? "" : ",", piece, id);
      ++id;
    };
    for (int byte = 0; byte < 256; ++byte) add(std::string(1, static_cast<char>(byte)));
    for (const std::string_view text : {"{\"",         "\":",        "\": ",
                                        "\",\"",       "\"}",        "\"},",
                                        "\"a\":",      "\"b\":1,\"", "[1,",
                                        "],",          "}]",         "12",
                                        "true",        "null",       "-1",
                                        ".5",          "e+1",        "\\\"",
                                        "\\u00",       "\\u2028",    "ab",
                                        "aaaa",        "abc def",    "\xC3\xA9",
                                        "\xE2\x80",    "\x80\xA8",   "\xF0\x9F\x98\x80",
                                        ",\n  ",       "    ",       "0000",
                                        "\",\"a\":\"", "2024-01-01"})
      add(text);
    MadeUpParts parts;
    parts.model = fmt::format(R"({{"type":"BPE","vocab":{{{}}},"merges":[]}})", vocab);
    return parse_tokenizer(made_up_json(parts), "fuzz");
  }();
  static const auto vocabulary = grammar::make_vocabulary(*tokenizer);
  return vocabulary;
}

struct Walk {
  std::string text;
  bool is_complete = false;
};

// Takes the tokens that `choices` selects among those allowed; ends with the choices, or where nothing can
// follow. A text that ends in the middle may be completed or not; one that cannot go on must be complete.
inline Walk walk(const std::shared_ptr<const grammar::Grammar>& grammar, std::string_view choices) {
  const auto vocabulary = small_vocabulary();
  const auto shared = std::make_shared<grammar::SharedMasks>();
  grammar::Matcher warm(grammar, vocabulary, shared), matcher(grammar, vocabulary, shared);
  grammar::Matcher bytes(grammar, vocabulary);
  std::vector<std::uint32_t> mask(vocabulary->mask_words()), again(mask.size());
  Walk out;
  for (const char choice : choices.substr(0, 24)) {
    matcher.fill(mask);
    must_hold(matcher.agrees_with_plain_walk(mask));
    warm.fill(again);
    must_hold(mask == again);
    std::vector<TokenId> allowed;
    for (TokenId token = 0; token < vocabulary->size(); ++token)
      if ((mask[static_cast<std::size_t>(token) / 32] >> (token % 32) & 1) != 0) allowed.push_back(token);
    must_hold(!allowed.empty() || matcher.may_end());
    must_hold(matcher.is_finished() == allowed.empty());
    if (allowed.empty()) break;
    const TokenId token = allowed[static_cast<std::uint8_t>(choice) * 7U % allowed.size()];
    const auto fork = matcher.fork();
    must_hold(matcher.take(token) && fork->take(token) && warm.take(token));
    must_hold(fork->may_end() == matcher.may_end());
    for (const char byte : vocabulary->bytes(token)) {
      must_hold(bytes.take_byte(static_cast<std::uint8_t>(byte)));
      out.text += byte;
    }
    must_hold(bytes.may_end() == matcher.may_end());
  }
  out.is_complete = matcher.may_end();
  return out;
}

// Compiles and walks. nullopt if the constraint is refused, or cannot be followed within the limits.
template <typename Compile>
std::optional<Walk> compile_and_walk(Compile compile, std::string_view choices) {
  try {
    return walk(compile(), choices);
  } catch (const grammar::RefusedError& error) {
    must_hold(!error.refusal().message.empty());
    return std::nullopt;
  }
}

// Strangers must not keep a thread busy: a fuzzer's machine is slow, and its checks are expensive.
inline grammar::CompileOptions quick() {
  return {.limits = {.time = std::chrono::milliseconds(200)}};
}

// The input up to the first zero byte is the constraint, the rest chooses.
inline std::pair<std::string_view, std::string_view> split_input(const std::uint8_t* data, std::size_t size) {
  const std::string_view input = text(data, size);
  const std::size_t end = std::min(input.find('\0'), input.size());
  return {input.substr(0, end), input.substr(std::min(end + 1, input.size()))};
}

}  // namespace inferno::fuzz
