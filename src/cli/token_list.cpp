#include "cli/token_list.h"

#include <fmt/format.h>

#include <charconv>

#include "base/error.h"

namespace inferno {

std::vector<TokenId> parse_tokens(std::string_view text, const std::string& origin) {
  constexpr std::string_view separators = ", \t\r\n";
  std::vector<TokenId> tokens;
  for (std::size_t at = text.find_first_not_of(separators); at != std::string_view::npos;
       at = text.find_first_not_of(separators, at)) {
    const std::size_t end = std::min(text.find_first_of(separators, at), text.size());
    const std::string_view word = text.substr(at, end - at);
    TokenId token = 0;
    const auto [stop, problem] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (problem != std::errc() || stop != word.data() + word.size() || token < 0) {
      fail(ErrorKind::invalid_request,
           fmt::format("{}: expected token ids separated by commas or spaces, found \"{}\"", origin,
                       word.substr(0, 40)));
    }
    tokens.push_back(token);
    at = end;
  }
  if (tokens.empty()) fail(ErrorKind::invalid_request, fmt::format("{}: no tokens", origin));
  return tokens;
}

}  // namespace inferno
