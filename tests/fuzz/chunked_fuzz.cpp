// F13: chunked request bodies. The decoder agrees with a plain one that sees the whole body at once, however
// the body is split, and Beast reads what it accepts in the same way.
#include <boost/beast/http/message.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <optional>
#include <string>

#include "fuzz/guard.h"
#include "server/http/chunked.h"
#include "server/http/request_head.h"

namespace {

using namespace inferno;
using server::BadRequest;
using server::ChunkedDecoder;

constexpr std::size_t max_body = 4096;

struct Decoded {
  std::string body;
  std::size_t used = 0;
  bool is_complete = false;
  int refused = 0;  // status
  bool operator==(const Decoded&) const = default;
};

void require(bool claim) {
  if (!claim) std::abort();
}

Decoded decode(std::string_view input, std::size_t step) {
  ChunkedDecoder decoder(max_body);
  Decoded result;
  try {
    while (!input.empty() && !decoder.is_complete()) {
      const std::size_t used = decoder.decode(input.substr(0, step), result.body);
      require(used == std::min(step, input.size()) || decoder.is_complete());
      result.used += used;
      input.remove_prefix(used);
    }
  } catch (const BadRequest& problem) {
    return {.body = {}, .used = 0, .is_complete = false, .refused = problem.status};
  }
  result.is_complete = decoder.is_complete();
  return result;
}

// The grammar of RFC 9112, 7.1, without trailers. nullopt if the input is not a whole body.
std::optional<Decoded> plain(std::string_view input) {
  Decoded result;
  while (true) {
    const std::size_t line_end = input.find("\r\n", result.used);
    if (line_end == std::string_view::npos) return std::nullopt;
    const std::string_view line = input.substr(result.used, line_end - result.used);
    const std::string_view digits = line.substr(0, line.find(';'));
    if (digits.empty() || digits.size() > 16) return std::nullopt;
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string_view::npos) return std::nullopt;
    for (const char c : line.substr(digits.size())) {
      if ((static_cast<unsigned char>(c) < 32 && c != '\t') || c == 127) return std::nullopt;
    }
    const std::uint64_t size = std::stoull(std::string(digits), nullptr, 16);
    result.used = line_end + 2;
    if (size > 0) {
      if (size > max_body - result.body.size() || input.size() - result.used < size) return std::nullopt;
      result.body += input.substr(result.used, size);
      result.used += size;
    }
    if (input.substr(result.used, 2) != "\r\n") return std::nullopt;
    result.used += 2;
    if (size == 0) break;
  }
  result.is_complete = true;
  return result;
}

// As Beast reads it; nullopt if it refuses.
std::optional<std::string> by_beast(std::string_view input) {
  namespace http = boost::beast::http;
  http::request_parser<http::string_body> parser;
  parser.eager(true);
  const std::string whole = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + std::string(input);
  std::string_view rest = whole;
  boost::system::error_code error;
  while (!rest.empty() && !parser.is_done()) {
    const std::size_t used = parser.put(boost::asio::buffer(rest), error);
    if (error || used == 0) return std::nullopt;
    rest.remove_prefix(used);
  }
  if (!parser.is_done()) return std::nullopt;
  return parser.get().body();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 1) return 0;
  const std::string_view input = fuzz::text(data + 1, size - 1);
  const Decoded whole = decode(input, std::max<std::size_t>(input.size(), 1));
  require(decode(input, data[0] % 16 + 1U) == whole);
  require(decode(input, 1) == whole);
  require(whole.body.size() <= max_body);
  const auto expected = plain(input);
  // The decoder limits extensions, which the grammar does not.
  if (expected && whole.refused == 0) require(whole == *expected);
  if (whole.is_complete) {
    require(expected.has_value());
    // Beast is stricter about extensions alone.
    const auto theirs = by_beast(input.substr(0, whole.used));
    const bool has_extension = input.substr(0, whole.used).find(';') != std::string_view::npos;
    require(theirs.has_value() || has_extension);
    if (theirs) require(*theirs == whole.body);
  }
  return 0;
}
