#include "cli/terminal/markdown/highlight.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/utf8.h"

namespace inferno::terminal {
namespace {

constexpr std::array languages = {
    Language{.names = "c cpp c++ cc h hpp cuda cu",
             .keywords =
                 "alignas alignof auto bool break case catch char class concept const constexpr continue "
                 "default delete do double else enum explicit extern false float for friend goto if "
                 "inline int long namespace new noexcept nullptr operator private protected public "
                 "requires return short signed sizeof static struct switch template this throw true try "
                 "typedef typename union unsigned using virtual void volatile while __global__ "
                 "__device__ __shared__",
             .comment = "//",
             .open = "/*",
             .close = "*/",
             .quotes = "\"'"},
    Language{.names = "python py python3",
             .keywords =
                 "and as assert async await break class continue def del elif else except False finally "
                 "for from global if import in is lambda None nonlocal not or pass raise return True "
                 "try while with yield match case self",
             .comment = "#",
             .open = "\"\"\"",
             .close = "\"\"\"",
             .quotes = "\"'"},
    Language{.names = "javascript js typescript ts jsx tsx",
             .keywords =
                 "as async await break case catch class const continue default delete do else enum "
                 "export extends false finally for from function if import in instanceof interface let "
                 "new null of return static super switch this throw true try type typeof undefined var "
                 "void while yield",
             .comment = "//",
             .open = "/*",
             .close = "*/",
             .quotes = "\"'`"},
    Language{.names = "java kotlin kt csharp cs c# swift scala",
             .keywords =
                 "abstract boolean break byte case catch char class const continue data default do "
                 "double else enum extends false final finally float for fun func if implements import "
                 "in int interface internal is let long namespace new null object override package "
                 "private protected public return sealed short static string struct super switch this "
                 "throw throws true try using val var void when while",
             .comment = "//",
             .open = "/*",
             .close = "*/",
             .quotes = "\"'"},
    Language{.names = "go golang",
             .keywords =
                 "break case chan const continue default defer else fallthrough false for func go goto "
                 "if import interface map nil package range return select struct switch true type var",
             .comment = "//",
             .open = "/*",
             .close = "*/",
             .quotes = "\"'`"},
    Language{.names = "rust rs",
             .keywords =
                 "as async await break const continue crate dyn else enum extern false fn for if impl "
                 "in let loop match mod move mut pub ref return self Self static struct super trait "
                 "true type unsafe use where while",
             .comment = "//",
             .open = "/*",
             .close = "*/",
             .quotes = "\""},
    Language{.names = "bash sh shell zsh console",
             .keywords =
                 "case do done elif else esac exit export fi for function if in local return set then "
                 "until while",
             .comment = "#",
             .open = {},
             .close = {},
             .quotes = "\"'"},
    Language{.names = "sql sqlite postgresql mysql",
             .keywords =
                 "add all alter and as asc between by case create delete desc distinct drop else end "
                 "exists from group having in index inner insert into is join key left like limit not "
                 "null on or order outer primary references right select set table then union unique "
                 "update values view when where with",
             .comment = "--",
             .open = "/*",
             .close = "*/",
             .quotes = "'\"",
             .has_cases = false},
    Language{.names = "json jsonc json5",
             .keywords = "true false null",
             .comment = "//",
             .open = {},
             .close = {},
             .quotes = "\""},
    Language{.names = "yaml yml toml ini cmake dockerfile makefile make ruby rb r perl",
             .keywords =
                 "true false null yes no begin class def do else elsif end if module nil require return "
                 "sub then unless while",
             .comment = "#",
             .open = {},
             .close = {},
             .quotes = "\"'"},
};

bool is_word(char byte) {
  return std::isalnum(static_cast<unsigned char>(byte)) != 0 || byte == '_' ||
         static_cast<unsigned char>(byte) >= 0x80;
}

bool is_digit(char byte) {
  return std::isdigit(static_cast<unsigned char>(byte)) != 0;
}

// Whether `list`, separated by blanks, has `word`.
bool has_word(std::string_view list, std::string_view word) {
  for (std::size_t at = list.find(word); at != std::string_view::npos; at = list.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || list[at - 1] == ' ') && (end == list.size() || list[end] == ' ')) return true;
  }
  return false;
}

}  // namespace

const Language* find_language(std::string_view name) {
  const std::string lower = lower_case(name);
  if (lower.empty() || lower.find(' ') != std::string::npos) return nullptr;
  const auto found =
      std::ranges::find_if(languages, [&](const Language& known) { return has_word(known.names, lower); });
  return found == languages.end() ? nullptr : &*found;
}

std::string Highlighter::line(std::string_view code) {
  std::string out;
  const auto show = [&](std::string_view style, std::string_view text) {
    if (style.empty() || text.empty()) {
      out += text;
    } else {
      out += std::string(style) + std::string(text) + std::string(theme_.plain);
    }
  };
  for (std::size_t at = 0; at < code.size();) {
    const std::string_view rest = code.substr(at);
    std::size_t end = at + 1;
    if (is_comment_ || (!language_->open.empty() && rest.starts_with(language_->open))) {
      end = comment_end(code, at);
      show(theme_.comment, code.substr(at, end - at));
    } else if (begins_comment(code, at)) {
      end = code.size();
      show(theme_.comment, rest);
    } else if (language_->quotes.find(code[at]) != std::string_view::npos) {
      end = string_end(code, at);
      show(end - at > 1 ? theme_.string : "", code.substr(at, end - at));
    } else if (is_word(code[at])) {
      while (end < code.size() && (is_word(code[end]) || (is_digit(code[at]) && code[end] == '.'))) ++end;
      const std::string_view word = code.substr(at, end - at);
      show(is_digit(word.front()) ? theme_.number : is_keyword(word) ? theme_.keyword : "", word);
    } else {
      show("", code.substr(at, 1));
    }
    at = end;
  }
  return out;
}

// "#" begins a comment after a blank only: $# and a#b are code.
bool Highlighter::begins_comment(std::string_view code, std::size_t at) const {
  if (!code.substr(at).starts_with(language_->comment)) return false;
  return language_->comment != "#" || at == 0 || code[at - 1] == ' ' || code[at - 1] == '\t';
}

std::size_t Highlighter::comment_end(std::string_view code, std::size_t at) {
  const std::size_t inside = is_comment_ ? at : at + language_->open.size();
  const std::size_t end = code.find(language_->close, inside);
  is_comment_ = end == std::string_view::npos;
  return is_comment_ ? code.size() : end + language_->close.size();
}

std::size_t Highlighter::string_end(std::string_view code, std::size_t at) const {
  for (std::size_t end = at + 1; end < code.size(); ++end) {
    if (code[end] == '\\') {
      ++end;
    } else if (code[end] == code[at]) {
      return end + 1;
    }
  }
  // An apostrophe that no other one follows is not a string.
  return code[at] == '\'' ? at + 1 : code.size();
}

bool Highlighter::is_keyword(std::string_view word) const {
  return language_->has_cases ? has_word(language_->keywords, word)
                              : has_word(language_->keywords, lower_case(word));
}

}  // namespace inferno::terminal
