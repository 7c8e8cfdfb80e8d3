#include "server/page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace inferno::server {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string header(const HttpResponse& response, std::string_view name) {
  const auto found = std::ranges::find(response.headers, name, &Headers::value_type::first);
  return found == response.headers.end() ? "" : found->second;
}

std::size_t occurrences(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (std::size_t at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST(Page, AllowsItsOwnScriptAndStyleByTheirHashes) {
  // printf 'alert(1)' | openssl dgst -sha256 -binary | base64
  EXPECT_THAT(content_security_policy("<style>b{}</style><script>alert(1)</script>"),
              HasSubstr("script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI=';"));
}

TEST(Page, KeepsToItself) {
  const HttpResponse response = page_response("");
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(header(response, "Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(header(response, "Referrer-Policy"), "no-referrer");
  const std::string policy = header(response, "Content-Security-Policy");
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, HasSubstr("connect-src 'self'"));
  EXPECT_THAT(policy, HasSubstr("frame-ancestors 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
}

TEST(Page, HasOneScriptAndOneStyleAndNoHtmlFromText) {
  const std::string text = page_response("").body;
  EXPECT_EQ(occurrences(text, "<script"), 1);
  EXPECT_EQ(occurrences(text, "<style"), 1);
  EXPECT_EQ(occurrences(text, " style="), 0);
  EXPECT_EQ(occurrences(text, "src=\""), 0);
  EXPECT_EQ(occurrences(text, "insertAdjacentHTML"), 0);
}

TEST(Page, IsNotSentAgainToABrowserThatHasIt) {
  const std::string etag = header(page_response(""), "ETag");
  EXPECT_EQ(etag.size(), 24);
  const HttpResponse response = page_response("W/" + etag);
  EXPECT_EQ(response.status, 304);
  EXPECT_EQ(response.body, "");
  EXPECT_EQ(header(response, "ETag"), etag);
  EXPECT_EQ(page_response("\"other\"").status, 200);
}

}  // namespace
}  // namespace inferno::server
