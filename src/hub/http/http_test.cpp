#include "hub/http/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/http/scene.h"

namespace inferno::hub {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* secret = "hf_secret";

HubSettings settings_for(const SmallServer& server) {
  HubSettings settings;
  settings.endpoint = server.url();
  settings.endpoint_source = "HF_ENDPOINT";
  settings.token = secret;
  settings.token_source = "HF_TOKEN";
  settings.time_scale = 0.01;
  return settings;
}

// A client for one test.
struct Client {
  explicit Client(const HubSettings& settings)
      : http(settings, std::make_shared<RateGate>(settings.time_scale)) {}
  HttpClient http;

  Outcome get(const std::string& url, Redirects redirects = Redirects::follow) {
    Request request;
    request.url = url;
    request.redirects = redirects;
    return http.attempt(request);
  }
};

TEST(Http, SendsTheTokenToTheHubButNotToARedirectTarget) {
  const SmallServer other([](const std::string&) { return answer(200, "bytes"); });
  const SmallServer hub(
      [&](const std::string&) { return answer(302, "", "Location: " + other.url() + "/file\r\n"); });
  const Outcome outcome = Client(settings_for(hub)).get(hub.url() + "/a");
  EXPECT_EQ(outcome.response.body, "bytes");
  EXPECT_THAT(hub.requests().at(0), HasSubstr("Authorization: Bearer hf_secret"));
  EXPECT_THAT(other.requests().at(0), Not(HasSubstr("hf_secret")));
}

TEST(Http, KeepsTheTokenWhenAModelHasMovedOnTheSameHub) {
  const SmallServer hub([](const std::string& request) {
    return request.starts_with("GET /old") ? answer(307, "", "Location: /new\r\n") : answer(200, "{}");
  });
  EXPECT_EQ(Client(settings_for(hub)).get(hub.url() + "/old").response.status, 200);
  EXPECT_THAT(hub.requests().at(1), HasSubstr("Authorization: Bearer hf_secret"));
}

TEST(Http, StopsAtARedirectToAnotherHostIfOnlyRelativeOnesAreAllowed) {
  const SmallServer hub([](const std::string& request) {
    return request.starts_with("GET /old") ? answer(307, "", "Location: /new\r\n")
                                           : answer(302, "", "Location: https://cdn.example/x?sig=1\r\n");
  });
  const Outcome outcome = Client(settings_for(hub)).get(hub.url() + "/old", Redirects::relative);
  EXPECT_EQ(outcome.response.status, 302);
  EXPECT_EQ(outcome.response.location, "https://cdn.example/x?sig=1");
}

TEST(Http, FollowsNoLoopsNoFilesAndNoPlainHttp) {
  for (const std::string location :
       {"/a", "file:///etc/passwd", "http://example.com/x", "ftp://127.0.0.1/x"}) {
    const SmallServer hub(
        [&](const std::string&) { return answer(302, "", "Location: " + location + "\r\n"); });
    const Outcome outcome = Client(settings_for(hub)).get(hub.url() + "/a");
    EXPECT_EQ(outcome.trouble, Trouble::refused) << location;
    EXPECT_LE(hub.requests().size(), 11U);
  }
}

TEST(Http, RefusesAPlainHttpHubOnAnotherMachine) {
  HubSettings settings;
  settings.endpoint = "http://hub.example";
  EXPECT_THROW(Client{settings}, Error);
  settings.endpoint = "http://127.0.0.1.example";
  EXPECT_THROW(Client{settings}, Error);
}

TEST(Http, LimitsTheBody) {
  const SmallServer hub([](const std::string&) { return answer(200, std::string(100'000, 'x')); });
  Client client(settings_for(hub));
  Request request;
  request.url = hub.url();
  request.body_limit = 1000;
  const Outcome outcome = client.http.attempt(request);
  EXPECT_EQ(outcome.trouble, Trouble::too_large);
  EXPECT_LE(outcome.response.body.size(), 1000U);
}

TEST(Http, LimitsTheHeaders) {
  std::string headers;
  for (int at = 0; at < 2000; ++at) headers += fmt::format("X-{}: {}\r\n", at, std::string(60, 'x'));
  const SmallServer hub([&](const std::string&) { return answer(200, "", headers); });
  EXPECT_EQ(Client(settings_for(hub)).get(hub.url()).trouble, Trouble::too_large);
}

TEST(Http, RetriesServerErrorsAndReturnsTheLastResponse) {
  const SmallServer hub([](const std::string&) { return answer(503, "down"); });
  HubSettings settings = settings_for(hub);
  settings.time_scale = 1e-5;
  Client client(settings);
  Request request;
  request.url = hub.url();
  EXPECT_EQ(client.http.send(request).status, 503);
  EXPECT_EQ(hub.requests().size(), 8U);
}

TEST(Http, DoesNotWaitForAnHour) {
  const SmallServer hub([](const std::string&) { return answer(429, "", "Retry-After: 3600\r\n"); });
  Client client(settings_for(hub));
  Request request;
  request.url = hub.url();
  try {
    client.http.send(request);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::network);
    EXPECT_THAT(error.what(), HasSubstr("3600 seconds"));
  }
  EXPECT_EQ(hub.requests().size(), 1U);
}

TEST(Http, EndsAtOnceWhenItIsCancelled) {
  const SmallServer hub([](const std::string&) { return answer(200, "{}"); });
  HttpClient client(settings_for(hub), std::make_shared<RateGate>(1), [] { return true; });
  Request request;
  request.url = hub.url();
  EXPECT_EQ(client.attempt(request).trouble, Trouble::cancelled);
}

TEST(Http, ReportsALostConnection) {
  const SmallServer hub(
      [](const std::string&) { return std::string("HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nshort"); });
  EXPECT_EQ(Client(settings_for(hub)).get(hub.url()).trouble, Trouble::broken);
}

}  // namespace
}  // namespace inferno::hub
