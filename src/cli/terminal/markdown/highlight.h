// Colours code: keywords, strings, comments and numbers of a few languages, from a table. It only inserts
// escape sequences between characters.
#pragma once

#include <string>
#include <string_view>

#include "cli/terminal/markdown/theme.h"

namespace inferno::terminal {

struct Language {
  std::string_view names;        // after ```, separated by blanks
  std::string_view keywords;     // separated by blanks
  std::string_view comment;      // up to the end of the line
  std::string_view open, close;  // of a comment over several lines; empty: none
  std::string_view quotes;       // each begins and ends a string in one line
  bool has_cases = true;         // false: keywords in any case, as in SQL
};

// nullptr if the language is not known.
const Language* find_language(std::string_view name);

class Highlighter {
 public:
  Highlighter(const Language& language, const Theme& theme) : language_(&language), theme_(theme) {}

  // One line of code, without its line break. A comment may have begun in an earlier line.
  std::string line(std::string_view code);

 private:
  bool begins_comment(std::string_view code, std::size_t at) const;
  std::size_t comment_end(std::string_view code, std::size_t at);
  std::size_t string_end(std::string_view code, std::size_t at) const;
  bool is_keyword(std::string_view word) const;

  const Language* language_;
  Theme theme_;
  bool is_comment_ = false;
};

}  // namespace inferno::terminal
