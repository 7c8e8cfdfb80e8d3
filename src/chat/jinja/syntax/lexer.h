// Splits a template into the text between tags and the tokens inside them, with Jinja2's whitespace rules
// as Hugging Face configures them: trim_blocks and lstrip_blocks on, one final newline dropped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inferno::jinja {

enum class TokenKind : unsigned char {
  data,
  statement_begin,
  statement_end,
  output_begin,
  output_end,
  name,
  string,
  integer,
  floating,
  symbol,  // an operator or bracket
  end,
};

struct Token {
  TokenKind kind;
  int line;
  std::string text;  // data as printed, names and symbols as written, strings with escapes resolved
};

// `name` is the template's, for messages. Error{corrupt} naming the line if a tag, a string or a comment is
// not closed, or for a character that is not allowed inside a tag.
std::vector<Token> tokenize(std::string_view source, std::string_view name);

}  // namespace inferno::jinja
