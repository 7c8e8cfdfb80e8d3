#include "hub/http/url.h"

#include <gtest/gtest.h>

namespace inferno::hub {
namespace {

TEST(Url, HasAnOriginOfSchemeHostAndPort) {
  EXPECT_EQ(parse_url("HTTPS://Hub.Example/x?y#z")->origin(), "https://hub.example:443");
  EXPECT_EQ(parse_url("http://127.0.0.1:81/")->origin(), "http://127.0.0.1:81");
}

TEST(Url, RefusesAUserAnotherSchemeAndControlCharacters) {
  for (const char* text : {"https://user@hub.example/", "ftp://hub.example/", "file:///etc/passwd",
                           "hub.example", "", "https://hub.example/\r\nX: 1"}) {
    EXPECT_FALSE(parse_url(text)) << text;
  }
}

TEST(Url, RecognizesOnlyThisMachineAsLoopback) {
  for (const char* text :
       {"http://localhost:1/", "http://127.0.0.1/", "http://127.9.9.9/", "http://[::1]:80/"}) {
    EXPECT_TRUE(parse_url(text)->is_loopback()) << text;
  }
  for (const char* text : {"http://127.0.0.1.example/", "http://localhost.example/", "http://10.0.0.1/"}) {
    EXPECT_FALSE(parse_url(text)->is_loopback()) << text;
  }
}

TEST(Url, ResolvesRedirects) {
  const Url base = *parse_url("https://hub.example/a/b?c=d");
  EXPECT_EQ(resolve_url(base, "/x")->text, "https://hub.example/x");
  EXPECT_EQ(resolve_url(base, "//other.example/x")->host, "other.example");
  EXPECT_EQ(resolve_url(base, "https://other.example/x y")->text, "https://other.example/x%20y");
}

TEST(Url, TellsRelativeRedirectsFromOthers) {
  for (const char* text : {"/x", "x", "?y", "/x?u=https://a"}) EXPECT_TRUE(is_relative(text)) << text;
  for (const char* text : {"https://a/", "//a/", "\\\\a", "/\\a", "mailto:x"})
    EXPECT_FALSE(is_relative(text)) << text;
}

TEST(Url, PercentEncodesSpecialCharacters) {
  EXPECT_EQ(percent_encoded("refs/pr/1", Slash::quoted), "refs%2Fpr%2F1");
  EXPECT_EQ(percent_encoded("a b/ü%", Slash::kept), "a%20b/%C3%BC%25");
}

TEST(Url, IsShownWithoutItsSignature) {
  EXPECT_EQ(without_query("https://cdn.example/x?Signature=secret"), "https://cdn.example/x");
}

}  // namespace
}  // namespace inferno::hub
