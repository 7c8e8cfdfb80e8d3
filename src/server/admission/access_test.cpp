#include "server/admission/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno::server {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Pair;

HttpRequest request_with(Headers headers) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.headers = std::move(headers);
  return request;
}

Access with_keys(std::vector<std::string> keys) {
  return Access({.keys = std::move(keys)});
}

TEST(Access, FindsTheNumberOfAKeyInEitherHeader) {
  const Access access = with_keys({"first", "second"});
  EXPECT_EQ(access.key_of(request_with({{"authorization", "Bearer first"}})), 1);
  EXPECT_EQ(access.key_of(request_with({{"authorization", "bearer  second "}})), 2);
  EXPECT_EQ(access.key_of(request_with({{"x-api-key", "second"}})), 2);
  EXPECT_EQ(access.key_of(request_with({{"authorization", "Bearer none"}, {"x-api-key", "first"}})), 1);
}

TEST(Access, RefusesMissingAndWrongKeys) {
  const Access access = with_keys({"first", "second"});
  EXPECT_TRUE(access.needs_key());
  EXPECT_EQ(access.key_of(request_with({})), std::nullopt);
  for (const char* sent : {"", "Bearer", "Bearer ", "Bearer firs", "Bearer first second", "Bearer First",
                           "Basic first", "first"}) {
    EXPECT_EQ(access.key_of(request_with({{"authorization", sent}})), std::nullopt) << sent;
  }
  EXPECT_EQ(access.key_of(request_with({{"x-api-key", "Bearer first"}})), std::nullopt);
}

TEST(Access, NeedsNoKeyIfNoneIsSet) {
  const Access access = with_keys({});
  EXPECT_FALSE(access.needs_key());
  EXPECT_EQ(access.key_of(request_with({})), 0);
  EXPECT_EQ(access.key_of(request_with({{"authorization", "Bearer anything"}})), 0);
}

TEST(Access, RefusesAnEmptyKey) {
  EXPECT_THROW(with_keys({"first", ""}), Error);
}

TEST(Access, OnLoopbackAcceptsOnlyLoopbackHosts) {
  const Access access({.allowed_hosts = {"Inferno.local"}});
  for (const char* host : {"localhost", "LocalHost:8000", "127.0.0.1:8000", "127.0.0.2", "[::1]:8000",
                           "[::1]", "inferno.local:8000", "INFERNO.LOCAL"}) {
    EXPECT_EQ(access.refuses(request_with({{"host", host}})), std::nullopt) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "127.0.0.1:80:80", "[::1", "[::1]x", "localhost:80x", ":8000", "192.168.0.7",
                           "127.0.0", "127.0.0.1.1", "127.0.0.x", "user@localhost", "localhost."}) {
    EXPECT_EQ(access.refuses(request_with({{"host", host}})), Refusal::bad_host) << host;
  }
}

TEST(Access, OnAPublicAddressAcceptsAnyHostUnlessSomeAreNamed) {
  const Access any({.is_loopback = false});
  EXPECT_EQ(any.refuses(request_with({{"host", "inferno.example:443"}})), std::nullopt);

  const Access named({.is_loopback = false, .allowed_hosts = {"inferno.example"}});
  for (const char* host : {"inferno.example", "10.0.0.7:8000", "[fd00::7]:8000", "localhost:8000"}) {
    EXPECT_EQ(named.refuses(request_with({{"host", host}})), std::nullopt) << host;
  }
  EXPECT_EQ(named.refuses(request_with({{"host", "evil.example"}})), Refusal::bad_host);
}

TEST(Access, RefusesForeignOrigins) {
  const Access access({});
  const auto from = [&](const char* origin) {
    return access.refuses(request_with({{"host", "127.0.0.1:8000"}, {"origin", origin}}));
  };
  EXPECT_EQ(from("http://127.0.0.1:8000"), std::nullopt);
  EXPECT_EQ(from("https://127.0.0.1:8000"), std::nullopt);
  for (const char* origin : {"https://evil.example", "http://127.0.0.1:3000", "http://localhost:8000", "null",
                             "http://127.0.0.1:8000.evil.example", "127.0.0.1:8000"}) {
    EXPECT_EQ(from(origin), Refusal::bad_origin) << origin;
  }
}

TEST(Access, SendsCorsHeadersToListedOriginsAlone) {
  const Access access({.cors_origins = {"https://chat.example"}});
  const HttpRequest listed = request_with({{"host", "localhost:8000"}, {"origin", "https://chat.example"}});
  EXPECT_EQ(access.refuses(listed), std::nullopt);
  EXPECT_THAT(access.cors_headers(listed),
              Contains(Pair("Access-Control-Allow-Origin", "https://chat.example")));
  EXPECT_THAT(access.cors_headers(listed), Contains(Pair("Vary", "Origin")));
  for (const char* origin :
       {"https://chat.example.evil.example", "http://chat.example", "https://chat.example:8443", ""}) {
    EXPECT_THAT(access.cors_headers(request_with({{"origin", origin}})), IsEmpty()) << origin;
  }
}

TEST(Access, NeverSendsCredentialsWithAnyOrigin) {
  const Access access({.cors_origins = {"*"}});
  const HttpRequest request = request_with({{"origin", "https://anything.example"}});
  EXPECT_EQ(access.refuses(request), std::nullopt);
  const Headers headers = access.cors_headers(request);
  EXPECT_THAT(headers, Contains(Pair("Access-Control-Allow-Origin", "*")));
  for (const auto& [name, value] : headers) EXPECT_NE(name, "Access-Control-Allow-Credentials");
}

TEST(Access, AnswersThePreflightOfAListedOrigin) {
  const Access access({.cors_origins = {"https://chat.example"}});
  HttpRequest request = request_with({{"host", "localhost:8000"},
                                      {"origin", "https://chat.example"},
                                      {"access-control-request-method", "POST"},
                                      {"access-control-request-headers", "authorization,x-stainless-os"}});
  EXPECT_EQ(access.preflight(request, "POST"), std::nullopt) << "not an OPTIONS request";
  request.method = "OPTIONS";
  const auto response = access.preflight(request, "GET, POST");
  ASSERT_TRUE(response.has_value());
  EXPECT_EQ(response->status, 204);
  EXPECT_THAT(response->headers, Contains(Pair("Access-Control-Allow-Methods", "GET, POST")));
  EXPECT_THAT(response->headers,
              Contains(Pair("Access-Control-Allow-Headers", "authorization,x-stainless-os")));
  EXPECT_EQ(Access({}).preflight(request, "POST"), std::nullopt);
}

}  // namespace
}  // namespace inferno::server
