#include "cli/terminal/report_error.h"

#include <fmt/format.h>

#include "base/utf8.h"

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

std::string describe(const Error& error) {
  std::string text = fmt::format("error: {}\n", printable(error.what()));
  if (!error.advice().why.empty()) text += fmt::format("why:   {}\n", printable(error.advice().why));
  if (!error.advice().next.empty()) text += fmt::format("next:  {}\n", printable(error.advice().next));
  return text;
}

}  // namespace inferno
