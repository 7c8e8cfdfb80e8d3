#include "server/http/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "server/http/scene.h"

namespace inferno::server {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// Keeps the exchange for the test's thread.
class Waiting {
 public:
  Handle handle() {
    return [this](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
      exchange->on_disconnect([this] { gone.set(); });
      exchange_ = std::move(exchange);
      arrived.set();
    };
  }
  std::shared_ptr<Exchange> exchange() {
    EXPECT_TRUE(arrived.wait());
    return exchange_;
  }
  Event arrived, gone;

 private:
  std::shared_ptr<Exchange> exchange_;
};

HttpResponse events() {
  return {.status = 200, .headers = {{"Content-Type", "text/event-stream"}}, .body = ""};
}

TEST(HttpServer, AnswersAndKeepsTheConnection) {
  RunningServer server(echo);
  Client client(server);
  for (int i = 0; i < 3; ++i) {
    const Received response = client.ask(post("hello"));
    EXPECT_EQ(response.status, 200);
    EXPECT_EQ(response.body, "POST /echo hello");
    EXPECT_TRUE(response.has("Date: "));
    EXPECT_THAT(response.head, Not(HasSubstr("Server:")));
  }
  EXPECT_EQ(server.http.counts().accepted, 1u);
}

TEST(HttpServer, AnswersPipelinedRequestsInOrder) {
  RunningServer server(echo);
  Client client(server);
  client.send(post("one") + post("two") + "\r\n" + post("three"));
  EXPECT_EQ(client.response().body, "POST /echo one");
  EXPECT_EQ(client.response().body, "POST /echo two");
  EXPECT_EQ(client.response().body, "POST /echo three");
}

TEST(HttpServer, HandsOverPathQueryAndHeaders) {
  HttpRequest seen;
  RunningServer server([&](HttpRequest request, const std::shared_ptr<Exchange>& exchange) {
    seen = std::move(request);
    exchange->respond({});
  });
  Client(server).ask("GET /a%20b?x=1&y HTTP/1.1\r\nHost: here:1\r\nX-Thing:  two words \r\n\r\n");
  EXPECT_EQ(seen.path, "/a%20b");
  EXPECT_EQ(seen.query, "x=1&y");
  EXPECT_EQ(seen.header("x-thing"), "two words");
  EXPECT_EQ(seen.header("missing"), "");
  EXPECT_EQ(seen.peer, "127.0.0.1");
}

TEST(HttpServer, SendsNoBodyToHead) {
  RunningServer server(echo);
  Client client(server);
  client.send("HEAD /x HTTP/1.1\r\nHost: a\r\n\r\n");
  const Received response = client.response(/*is_head=*/true);
  EXPECT_TRUE(response.has("Content-Length: 8\r\n"));
  EXPECT_EQ(client.get("/y").body, "GET /y ");
}

TEST(HttpServer, HonoursConnectionCloseAndTheDefaultOfHttp10) {
  RunningServer server(echo);
  for (const std::string request :
       {"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "GET / HTTP/1.0\r\n\r\n"}) {
    Client client(server);
    EXPECT_TRUE(client.ask(request).has("Connection: close\r\n"));
    EXPECT_TRUE(client.sees_close());
  }
  Client client(server);
  const std::string keep = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
  EXPECT_TRUE(client.ask(keep).has("Connection: keep-alive\r\n"));
  EXPECT_EQ(client.ask(keep).status, 200);
}

TEST(HttpServer, ClosesWhenTheHandlerAsksForIt) {
  RunningServer server([](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.status = 503, .headers = {{"Connection", "close"}}, .body = "later"});
  });
  Client client(server);
  EXPECT_EQ(client.get().body, "later");
  EXPECT_TRUE(client.sees_close());
}

TEST(HttpServer, DoesNotLetAHeaderBeginAnotherLine) {
  RunningServer server([](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->respond({.status = 200, .headers = {{"X", "a\r\nInjected: b"}}, .body = ""});
  });
  EXPECT_TRUE(Client(server).get().has("X: a  Injected: b\r\n"));
}

TEST(HttpServer, SendsContinueOnlyToTheAdmitted) {
  HttpHandler callbacks = handler(echo);
  callbacks.admit = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.header("authorization") == "yes") return std::nullopt;
    return HttpResponse{.status = 401, .headers = {}, .body = "no"};
  };
  RunningServer server(callbacks, any_port());
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n";
  Client stranger(server);
  EXPECT_EQ(stranger.ask(head + "\r\n").status, 401);
  EXPECT_TRUE(stranger.sees_close());

  Client friendly(server);
  EXPECT_EQ(friendly.ask(head + "Authorization: yes\r\n\r\n").status, 100);
  EXPECT_EQ(friendly.ask("hi").body, "POST / hi");
}

TEST(HttpServer, KeepsARefusedConnectionWhoseBodyWasReceived) {
  HttpHandler callbacks = handler(echo);
  callbacks.admit = [](const HttpRequest& head) -> std::optional<HttpResponse> {
    if (head.path == "/") return std::nullopt;
    return HttpResponse{.status = 404, .headers = {}, .body = ""};
  };
  RunningServer server(callbacks, any_port());
  Client client(server);
  EXPECT_EQ(client.ask(post("ignored")).status, 404);
  EXPECT_EQ(client.get().body, "GET / ");
}

TEST(HttpServer, ReadsChunkedBodies) {
  RunningServer server(echo);
  Client client(server);
  const std::string head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n";
  EXPECT_EQ(client.ask(head + "3\r\nabc\r\nA;name=value\r\n0123456789\r\n0\r\n\r\n").body,
            "POST / abc0123456789");
  client.send(head + "1\r");
  std::this_thread::sleep_for(milliseconds(10));
  client.send("\nx\r\n0");
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(client.ask("\r\n\r\n").body, "POST / x");
}

TEST(HttpServer, StreamsAndKeepsTheConnection) {
  RunningServer server([](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    std::thread([exchange] {
      exchange->begin(events(), "");
      for (int i = 0; i < 100; ++i) exchange->write(std::to_string(i) + "\n");
      exchange->finish();
    }).detach();
  });
  std::string expected;
  for (int i = 0; i < 100; ++i) expected += std::to_string(i) + "\n";
  Client client(server);
  for (int round = 0; round < 3; ++round) {
    const Received response = client.get();
    EXPECT_TRUE(response.has("Content-Type: text/event-stream\r\n"));
    EXPECT_TRUE(response.is_complete);
    EXPECT_EQ(response.body, expected);
  }
}

TEST(HttpServer, StreamsToHttp10UntilTheEnd) {
  RunningServer server([](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->begin(events(), "");
    exchange->write("one ");
    exchange->write("two");
    exchange->finish();
  });
  Client client(server);
  const Received response = client.ask("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(response.body, "one two");
  EXPECT_FALSE(response.has("Transfer-Encoding"));
}

TEST(HttpServer, EndsAStreamToHttp10AfterItsLastPieceWasSent) {
  Waiting waiting;
  RunningServer server(waiting.handle());
  Client client(server);
  client.send("GET / HTTP/1.0\r\n\r\n");
  waiting.exchange()->begin(events(), "");
  waiting.exchange()->write("one");
  client.receive_until("one");
  EXPECT_FALSE(client.receive_more(milliseconds(50)));  // the server knows that it was sent
  waiting.exchange()->finish();
  EXPECT_TRUE(client.sees_close());
}

TEST(HttpServer, SendsTheHeadOfAStreamWithItsFirstPiece) {
  Waiting waiting;
  RunningServer server(waiting.handle());
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  waiting.exchange()->begin(events(), ": ping\n\n");
  EXPECT_FALSE(client.receive_more(milliseconds(50)));
  waiting.exchange()->write("x");
  EXPECT_THAT(client.receive_until("x\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpServer, PingsASilentStream) {
  Waiting waiting;
  HttpOptions options = any_port();
  options.ping_after = milliseconds(60);
  RunningServer server(waiting.handle(), options);
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  waiting.exchange()->begin(events(), ": ping\n\n");
  const std::string first = client.receive_until(": ping\n\n");
  EXPECT_THAT(first, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(client.receive_until(": ping\n\n"), HasSubstr(": ping\n\n"));
  waiting.exchange()->finish();
  EXPECT_THAT(client.receive_until("0\r\n\r\n"), HasSubstr("0\r\n\r\n"));
}

TEST(HttpServer, EndsAFailedStreamWithAResponseWhileItCan) {
  Waiting early, late;
  const HttpResponse failure = {.status = 503, .headers = {}, .body = "sorry"};
  {
    RunningServer server(early.handle());
    Client client(server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    early.exchange()->begin(events(), "");
    early.exchange()->abandon(failure, "data: sorry\n\n");
    EXPECT_EQ(client.response().body, "sorry");
  }
  RunningServer server(late.handle());
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  late.exchange()->begin(events(), "");
  late.exchange()->write("data: 1\n\n");
  late.exchange()->abandon(failure, "data: sorry\n\n");
  const Received response = client.response();
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "data: 1\n\ndata: sorry\n\n");
}

TEST(HttpServer, AnswersForAHandlerThatDoesNot) {
  RunningServer forgetful([](const HttpRequest&, const std::shared_ptr<Exchange>&) {});
  EXPECT_EQ(Client(forgetful).get().status, 500);
  RunningServer throwing(
      [](const HttpRequest&, const std::shared_ptr<Exchange>&) { throw std::runtime_error("no"); });
  Client client(throwing);
  EXPECT_EQ(client.get().status, 500);
  EXPECT_EQ(client.get().status, 500);
}

TEST(HttpServer, CutsAStreamWhoseExchangeIsDropped) {
  RunningServer server([](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    exchange->begin(events(), "");
    exchange->write("half");
  });
  Client client(server);
  EXPECT_FALSE(client.get().is_complete);
  EXPECT_TRUE(client.sees_close());
}

// How long the server takes to notice that a client left; the best of a few, because the machine is busy with
// other tests too.
milliseconds time_to_notice(const std::string& version, const std::string& streamed,
                            const std::function<void(Client&)>& leave) {
  milliseconds best = milliseconds::max();
  for (int attempt = 0; attempt < 5 && best > milliseconds(50); ++attempt) {
    Waiting waiting;
    RunningServer server(waiting.handle());
    Client client(server);
    client.send("GET / HTTP/" + version + "\r\nHost: a\r\n\r\n");
    const auto exchange = waiting.exchange();
    if (!streamed.empty()) {
      exchange->begin(events(), ": ping\n\n");
      exchange->write(streamed);
      client.receive_until(streamed + "\r\n");
    }
    const auto start = std::chrono::steady_clock::now();
    leave(client);
    EXPECT_TRUE(waiting.gone.wait());
    best = std::min(best, since(start));
    exchange->write("data: 2\n\n");  // does nothing
    exchange->finish();
    EXPECT_TRUE(eventually([&] { return server.http.counts().connections == 0; }));
  }
  return best;
}

TEST(HttpServer, NoticesAClientThatLeaves) {
  const auto close = [](Client& client) { client.close(); };
  const auto reset = [](Client& client) { client.reset(); };
  EXPECT_LE(time_to_notice("1.1", "", close), milliseconds(50));
  EXPECT_LE(time_to_notice("1.0", "", close), milliseconds(50));
  EXPECT_LE(time_to_notice("1.1", "data: 1\n\n", close), milliseconds(50));
  EXPECT_LE(time_to_notice("1.1", "", reset), milliseconds(50));
  EXPECT_LE(time_to_notice("1.1", "data: 1\n\n", reset), milliseconds(50));
}

TEST(HttpServer, NoticesAClientThatPipelinedTooMuchAndCloses) {
  Waiting waiting;
  RunningServer server(waiting.handle());
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  waiting.exchange();
  client.send(std::string(100'000, 'x'));
  client.close();
  EXPECT_TRUE(waiting.gone.wait());
}

TEST(HttpServer, SaysAtOnceThatTheClientHasGone) {
  std::shared_ptr<Exchange> kept;
  Event arrived;
  RunningServer server([&](const HttpRequest&, std::shared_ptr<Exchange> exchange) {
    kept = std::move(exchange);
    arrived.set();
  });
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  ASSERT_TRUE(arrived.wait());
  client.reset();
  ASSERT_TRUE(eventually([&] { return server.http.counts().connections == 0; }));
  bool gone = false;
  kept->on_disconnect([&] { gone = true; });
  EXPECT_TRUE(gone);
}

TEST(HttpServer, ServesAClientThatShutDownItsSendingSide) {
  Waiting waiting;
  RunningServer server(waiting.handle());
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  client.shut_down_sending();
  EXPECT_FALSE(waiting.gone.wait(milliseconds(150)));
  waiting.exchange()->respond({.status = 200, .headers = {}, .body = "still here"});
  const Received response = client.response();
  EXPECT_THAT(response.head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(response.body, "still here");
  EXPECT_TRUE(client.sees_close());
}

TEST(HttpServer, ServesPipelinedRequestsOfAClientThatShutDownItsSendingSide) {
  RunningServer server(echo);
  Client client(server);
  client.send(post("one") + post("two"));
  client.shut_down_sending();
  EXPECT_EQ(client.response().body, "POST /echo one");
  EXPECT_EQ(client.response().body, "POST /echo two");
  EXPECT_TRUE(client.sees_close());
}

TEST(HttpServer, StreamsToAClientThatShutDownItsSendingSide) {
  Waiting waiting;
  RunningServer server(waiting.handle());
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  client.shut_down_sending();
  waiting.exchange()->begin(events(), ": ping\n\n");
  std::this_thread::sleep_for(milliseconds(100));
  waiting.exchange()->write("data: 1\n\n");
  waiting.exchange()->finish();
  const Received response = client.response();
  EXPECT_TRUE(response.is_complete);
  EXPECT_THAT(response.body, HasSubstr("data: 1\n\n"));
}

TEST(HttpServer, DrainsBeforeItStops) {
  Waiting waiting;
  RunningServer server(waiting.handle());
  Client busy(server), idle(server);
  busy.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto exchange = waiting.exchange();
  ASSERT_TRUE(eventually([&] { return server.http.counts().connections == 2; }));
  server.http.stop_accepting();
  EXPECT_THROW(Client{server}, std::runtime_error);
  EXPECT_FALSE(server.http.wait_until_idle(milliseconds(20)));
  exchange->respond({.status = 200, .headers = {}, .body = "last"});
  EXPECT_TRUE(server.http.wait_until_idle(milliseconds(2000)));
  const Received response = busy.response();
  EXPECT_EQ(response.body, "last");
  EXPECT_TRUE(response.has("Connection: close\r\n"));
}

TEST(HttpServer, IsNotIdleWhileOneOfManyIsUnanswered) {
  Waiting waiting;
  const Handle wait = waiting.handle();
  RunningServer server([&](HttpRequest request, std::shared_ptr<Exchange> exchange) {
    if (request.path == "/wait") return wait(std::move(request), std::move(exchange));
    echo(request, exchange);
  });
  Client slow(server);
  slow.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto exchange = waiting.exchange();
  Client half_closed(server), closing(server), reset(server), kept(server);
  half_closed.send(post("x"));
  half_closed.shut_down_sending();
  EXPECT_EQ(half_closed.response().status, 200);
  EXPECT_EQ(closing.ask("GET / HTTP/1.0\r\n\r\n").status, 200);
  EXPECT_EQ(reset.get().status, 200);
  reset.reset();
  EXPECT_EQ(kept.get().status, 200);
  EXPECT_EQ(Client(server).ask("nonsense\r\n\r\n").status, 400);
  server.http.stop_accepting();
  EXPECT_FALSE(server.http.wait_until_idle(milliseconds(50)));
  const Received late = kept.get();  // an open connection is still served, once
  EXPECT_EQ(late.status, 200);
  EXPECT_TRUE(late.has("Connection: close\r\n"));
  EXPECT_TRUE(kept.sees_close());
  exchange->respond({});
  EXPECT_TRUE(server.http.wait_until_idle(milliseconds(2000)));
}

TEST(HttpServer, AnExchangeMayOutliveTheServer) {
  Waiting waiting;
  auto server = std::make_unique<RunningServer>(waiting.handle());
  Client client(*server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto exchange = waiting.exchange();
  server.reset();
  EXPECT_TRUE(waiting.gone.wait());
  exchange->begin(events(), "");
  exchange->write("x");
  exchange->finish();
  EXPECT_TRUE(client.sees_close());
}

TEST(HttpServer, RefusesAddressesItCannotListenOn) {
  const auto kind_of = [](HttpOptions options) {
    try {
      HttpServer server(std::move(options), handler(echo));
    } catch (const Error& error) {
      return error.kind();
    }
    return ErrorKind::internal;
  };
  HttpOptions named = any_port();
  named.host = "example.com";
  EXPECT_EQ(kind_of(named), ErrorKind::invalid_request);
  RunningServer first(echo);
  HttpOptions taken = any_port();
  taken.port = first.http.port();
  EXPECT_EQ(kind_of(taken), ErrorKind::io);
  HttpOptions foreign = any_port();
  foreign.host = "203.0.113.77";
  EXPECT_EQ(kind_of(foreign), ErrorKind::io);
}

TEST(HttpServer, ListensOnLocalhost) {
  HttpOptions options = any_port();
  options.host = "localhost";
  RunningServer server(echo, options);
  EXPECT_EQ(Client(server).get().status, 200);
}

TEST(HttpServer, ListensOnIpv6) {
  for (const char* host : {"::1", "[::1]", "::"}) {
    HttpOptions options = any_port();
    options.host = host;
    try {
      RunningServer server(echo, options);
      EXPECT_EQ(Client(server, "::1").get().status, 200);
      if (options.host == "::") {  // both families
        EXPECT_EQ(Client(server, "127.0.0.1").get().status, 200);
      }
    } catch (const Error&) {
      GTEST_SKIP() << "this machine has no IPv6";
    }
  }
}

// A socket that listens already, as a service manager hands it over.
int listening_socket(int type, int backlog) {
  const int descriptor = ::socket(AF_INET, type, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  if (backlog > 0 && ::listen(descriptor, backlog) != 0) ADD_FAILURE() << "listen";
  return descriptor;
}

TEST(HttpServer, TakesOverASocketThatOutlivesIt) {
  const int held = listening_socket(SOCK_STREAM, 16);
  HttpOptions options;  // port 8000, which is not used
  std::optional<Client> waiting;
  {
    options.listeners = {::dup(held)};
    RunningServer first(echo, options);
    EXPECT_NE(first.http.port(), 8000);
    EXPECT_EQ(Client(first).get().status, 200);
    first.http.stop_accepting();
    waiting.emplace(first);  // connects: the socket still listens
    waiting->send("GET /later HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  options.listeners = {::dup(held)};
  const RunningServer second(echo, options);
  EXPECT_EQ(waiting->response().body, "GET /later ");
  ::close(held);
}

TEST(HttpServer, RefusesDescriptorsThatDoNotListen) {
  for (const int descriptor :
       {listening_socket(SOCK_STREAM, 0), listening_socket(SOCK_DGRAM, 0), ::dup(STDIN_FILENO)}) {
    HttpOptions options;
    options.listeners = {descriptor};
    EXPECT_THAT([&] { const HttpServer server(options, handler(echo)); },
                testing::ThrowsMessage<Error>(HasSubstr("not a TCP socket that listens")));
    ::close(descriptor);
  }
}

TEST(HttpServer, HoldsAThousandStreams) {
  constexpr int count = 1000;
  std::mutex mutex;
  std::vector<std::shared_ptr<Exchange>> exchanges;
  RunningServer server([&](const HttpRequest& request, std::shared_ptr<Exchange> exchange) {
    if (request.path == "/health") return exchange->respond({.status = 200, .headers = {}, .body = "ok"});
    exchange->begin(events(), "");
    exchange->write("data: 0\n\n");
    const std::lock_guard lock(mutex);
    exchanges.push_back(std::move(exchange));
  });
  std::vector<Client> clients;
  for (int i = 0; i < count; ++i) {
    clients.emplace_back(server);
    clients.back().send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  }
  ASSERT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return exchanges.size() == count;
  }));
  milliseconds best = milliseconds::max();
  for (int attempt = 0; attempt < 5; ++attempt) {
    const auto start = std::chrono::steady_clock::now();
    EXPECT_EQ(Client(server).get("/health").body, "ok");
    best = std::min(best, since(start));
  }
  EXPECT_LE(best, milliseconds(100));
  for (const auto& exchange : exchanges) {
    exchange->write("data: 1\n\n");
    exchange->finish();
  }
  for (Client& client : clients) EXPECT_EQ(client.response().body, "data: 0\n\ndata: 1\n\n");
}

}  // namespace
}  // namespace inferno::server
