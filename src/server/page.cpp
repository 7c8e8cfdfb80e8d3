#include "server/page.h"

#include <fmt/format.h>

#include "base/error.h"
#include "server/admission/digest.h"
#include "server/doors.h"

namespace inferno::server {
namespace {

// What stands between the first <tag> and </tag>: what a browser takes the hash of.
std::string_view element_text(std::string_view page, std::string_view tag) {
  const std::string open = fmt::format("<{}>", tag), close = fmt::format("</{}>", tag);
  const std::size_t begin = page.find(open);
  const std::size_t end = page.find(close);
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) {
    fail(ErrorKind::internal, fmt::format("page: no <{}>", tag));
  }
  return page.substr(begin + open.size(), end - begin - open.size());
}

// The page and its headers do not change while the program runs.
struct Page {
  std::string_view text = page_files().front().bytes;
  std::string etag = fmt::format("\"{}\"", base64(sha256(text)).substr(0, 22));
  std::string policy = content_security_policy(text);
};

const Page& embedded_page() {
  static const Page page;
  return page;
}

}  // namespace

std::string content_security_policy(std::string_view page) {
  return fmt::format(
      "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data:; connect-src 'self'; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
      "trusted-types 'none'",
      base64(sha256(element_text(page, "script"))), base64(sha256(element_text(page, "style"))));
}

HttpResponse page_response(std::string_view etag) {
  const Page& page = embedded_page();
  const bool is_known = etag.find(page.etag) != std::string_view::npos;
  return {.status = is_known ? 304 : 200,
          .headers = {{"Content-Type", "text/html; charset=utf-8"},
                      {"Content-Security-Policy", page.policy},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cross-Origin-Opener-Policy", "same-origin"},
                      {"Cross-Origin-Resource-Policy", "same-origin"},
                      // Asked again each time, so that a newer program's page is seen at once.
                      {"Cache-Control", "no-cache"},
                      {"ETag", page.etag}},
          .body = is_known ? std::string() : std::string(page.text)};
}

void page(SharedCall call) {
  call->respond(page_response(call->request().header("if-none-match")));
}

}  // namespace inferno::server
