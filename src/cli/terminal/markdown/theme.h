// The styles of markdown. Only the sixteen colours that every terminal lets its user choose, so that they
// follow the user's theme, light or dark.
#pragma once

#include <string_view>

namespace inferno::terminal {

struct Theme {
  std::string_view plain = {}, heading = {}, bold = {}, italic = {}, mark = {}, code = {}, fence = {};
  std::string_view link = {}, address = {};
  std::string_view keyword = {}, string = {}, comment = {}, number = {};  // in code of a known language
};

inline constexpr Theme no_theme = {};
inline constexpr Theme terminal_theme = {.plain = "\x1b[0m",
                                         .heading = "\x1b[1m",
                                         .bold = "\x1b[1m",
                                         .italic = "\x1b[3m",
                                         .mark = "\x1b[36m",
                                         .code = "\x1b[36m",
                                         .fence = "\x1b[2m",
                                         .link = "\x1b[4m",
                                         .address = "\x1b[2m",
                                         .keyword = "\x1b[35m",
                                         .string = "\x1b[32m",
                                         .comment = "\x1b[2m",
                                         .number = "\x1b[36m"};

}  // namespace inferno::terminal
