#include "cli/terminal/report_error.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"
#include "cli/terminal/markdown/word_wrap.h"

namespace inferno {

int exit_code(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::invalid_request: return 2;
    case ErrorKind::not_found: return 3;
    case ErrorKind::unsupported:
    case ErrorKind::corrupt: return 4;
    case ErrorKind::network: return 5;
    case ErrorKind::io:
    case ErrorKind::overloaded: return 6;
    case ErrorKind::device: return 7;
    case ErrorKind::internal: return 1;
  }
  return 1;
}

namespace {

constexpr std::size_t max_bytes = 220;  // of a line; about three rows of 80 columns

// On one line, and cut after some rows of a screen: a list of a hundred tensors is of no use in a message.
std::string line_of(std::string text, Detail detail) {
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
    const std::size_t next = std::min(text.find_first_not_of(" \n", at), text.size());  // lists are indented
    text.replace(at, next - at, next == text.size() ? "" : " ");
  }
  if (detail == Detail::full || text.size() <= max_bytes) return printable(text);
  std::size_t end = text.rfind(' ', max_bytes);
  if (end == std::string::npos || end < max_bytes / 2) {
    end = max_bytes;
    while (end > 0 && utf8::is_continuation(text[end])) --end;
  }
  return printable(fmt::format("{} … and {} more characters", text.substr(0, end), text.size() - end));
}

// "why:   …", on narrow screens with further rows below the first.
std::string labelled(std::string_view label, const std::string& text, int columns) {
  constexpr int label_columns = 7;
  std::string rows = terminal::wrapped(text, columns > 2 * label_columns ? columns - label_columns : 0);
  for (std::size_t at = rows.find('\n'); at != std::string::npos; at = rows.find('\n', at + 1))
    rows.insert(at + 1, label_columns, ' ');
  return fmt::format("{:<{}}{}\n", label, label_columns, rows);
}

}  // namespace

std::string describe(const Error& error, Detail detail, int columns) {
  const Advice& advice = error.advice();
  std::string text = labelled("error:", line_of(error.what(), detail), columns);
  if (!advice.why.empty()) text += labelled("why:", line_of(advice.why, detail), columns);
  if (!advice.next.empty()) {
    // A command is copied from the screen in one piece only if the terminal itself breaks its row.
    const bool is_command = advice.next.starts_with("inferno ") &&
                            (std::ranges::count(advice.next, ' ') <= 3 || advice.next.ends_with('\''));
    text += labelled("next:", line_of(advice.next, detail), is_command ? 0 : columns);
  }
  return text;
}

}  // namespace inferno
