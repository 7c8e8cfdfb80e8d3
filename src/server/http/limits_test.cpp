// What is refused, and when.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/resource.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "server/http/scene.h"

namespace inferno::server {
namespace {

constexpr const char* next_request = "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n";

std::string with_headers(const std::string& headers) {
  return "POST / HTTP/1.1\r\nHost: a\r\n" + headers + "\r\n";
}
std::string chunked(const std::string& chunks) {
  return with_headers("Transfer-Encoding: chunked\r\n") + chunks;
}

struct Abuse {
  const char* name;
  std::string request;
  int status = 400;
};

std::vector<Abuse> lengths_and_lines() {
  return {
      {"length and chunks",
       with_headers("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n"},
      {"two lengths", with_headers("Content-Length: 5\r\nContent-Length: 5\r\n") + "hello"},
      {"different lengths", with_headers("Content-Length: 5\r\nContent-Length: 6\r\n") + "hello"},
      {"list of lengths", with_headers("Content-Length: 5, 5\r\n") + "hello"},
      {"signed length", with_headers("Content-Length: +5\r\n") + "hello"},
      {"negative length", with_headers("Content-Length: -5\r\n") + "hello"},
      {"hexadecimal length", with_headers("Content-Length: 0x5\r\n") + "hello"},
      {"empty length", with_headers("Content-Length: \r\n")},
      {"overflowing length", with_headers("Content-Length: 99999999999999999999999\r\n"), 413},
      {"unknown coding", with_headers("Transfer-Encoding: xchunked\r\n") + "0\r\n\r\n"},
      {"two codings", with_headers("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n"},
      {"coding twice",
       with_headers("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n") + "0\r\n\r\n"},
      {"coding in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"bare LF after the request line", "GET / HTTP/1.1\nHost: a\r\n\r\n"},
      {"bare LF after a header", "GET / HTTP/1.1\r\nHost: a\nX: b\r\n\r\n"},
      {"bare LFs alone", "GET / HTTP/1.1\n\n"},
      {"bare CR in a header", "GET / HTTP/1.1\r\nHost: a\r\nX: b\rY: c\r\n\r\n"},
      {"NUL in a header", with_headers(std::string("X: b\0c\r\n", 8))},
      {"folded header", with_headers("X: a\r\n b\r\n")},
      {"space before the colon", with_headers("Content-Length : 5\r\n") + "hello"},
      {"space before the name", "GET / HTTP/1.1\r\n Host: a\r\n\r\n"},
      {"no colon", with_headers("nonsense\r\n")},
      {"empty name", with_headers(": value\r\n")},
      {"separator in a name", with_headers("a(b): value\r\n")},
  };
}

std::vector<Abuse> request_lines() {
  return {
      {"no host", "GET / HTTP/1.1\r\n\r\n"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"},
      {"no version", "GET /\r\nHost: a\r\n\r\n"},
      {"version in lower case", "GET / http/1.1\r\nHost: a\r\n\r\n"},
      {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505},
      {"two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"space in the target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"escape in the target", "GET /\x1b[31m HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"relative target", "GET index.html HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"separator in the method", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n"},
      {"TLS on a plain port", std::string("\x16\x03\x01\x02\x00\x01\x00", 7)},
      {"unknown expectation", with_headers("Expect: tea\r\n"), 417},
      {"compressed body", with_headers("Content-Encoding: gzip\r\nContent-Length: 3\r\n") + "abc", 415},
  };
}

std::vector<Abuse> chunks() {
  return {
      {"chunk size without digits", chunked("\r\nabc\r\n0\r\n\r\n")},
      {"chunk size not hexadecimal", chunked("xyz\r\nabc\r\n0\r\n\r\n")},
      {"chunk size with a prefix", chunked("0x3\r\nabc\r\n0\r\n\r\n")},
      {"chunk size with a sign", chunked("-1\r\nabc\r\n0\r\n\r\n")},
      {"chunk size after a space", chunked(" 3\r\nabc\r\n0\r\n\r\n")},
      {"chunk size before a space", chunked("3 \r\nabc\r\n0\r\n\r\n")},
      {"chunk size of 17 digits", chunked("00000000000000003\r\nabc\r\n0\r\n\r\n")},
      {"chunk size beyond memory", chunked("ffffffffffffffff\r\nabc\r\n0\r\n\r\n"), 413},
      {"chunk size with a bare LF", chunked("3\nabc\r\n0\r\n\r\n")},
      {"chunk longer than its size", chunked("3\r\nabcd\r\n0\r\n\r\n")},
      {"chunk with a bare LF", chunked("3\r\nabc\n0\r\n\r\n")},
      {"control character in an extension", chunked("3;a=\x01\r\nabc\r\n0\r\n\r\n")},
      {"trailers", chunked("3\r\nabc\r\n0\r\nX: y\r\n\r\n")},
  };
}

void expect_refused(const std::vector<Abuse>& abuses) {
  std::atomic<int> handled = 0;
  RunningServer server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    ++handled;
    echo(request, exchange);
  });
  for (const Abuse& abuse : abuses) {
    SCOPED_TRACE(abuse.name);
    Client client(server);
    client.send(abuse.request + next_request);
    const Received response = client.response();
    EXPECT_EQ(response.status, abuse.status);
    EXPECT_TRUE(response.has("Connection: close\r\n"));
    EXPECT_TRUE(response.has("Content-Type: application/json\r\n"));
    EXPECT_EQ(client.receive_all(), "");
  }
  EXPECT_EQ(handled, 0);
}

TEST(HttpLimits, RefusesMalformedFramingAndNeverAnswersWhatFollows) {
  expect_refused(lengths_and_lines());
  expect_refused(request_lines());
  expect_refused(chunks());
}

TEST(HttpLimits, CountsMalformedRequests) {
  RunningServer server(echo);
  Client(server).ask("GET / HTTP/1.1\n\n");
  Client(server).ask("hello\r\n\r\n");
  EXPECT_EQ(Client(server).ask(with_headers("Content-Length: 99999999\r\n")).status, 413);
  EXPECT_EQ(server.http.counts().malformed, 2u);
}

TEST(HttpLimits, AcceptsUnusualButValidRequests) {
  RunningServer server(echo);
  const std::pair<std::string, std::string> requests[] = {
      {"GET http://a/x?y HTTP/1.1\r\nHost: b\r\n\r\n", "GET /x "},
      {"GET http://a HTTP/1.1\r\nHost: b\r\n\r\n", "GET / "},
      {"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * "},
      {"GET / HTTP/1.1\r\nhOsT:a\r\nX:\r\n\r\n", "GET / "},
      {"GET /\xC3\xA9 HTTP/1.1\r\nHost: a\r\nX: \xC3\xA9\r\n\r\n", "GET /\xC3\xA9 "},
      {with_headers("Content-Length: 0000000005\r\n") + "hello", "POST / hello"},
      {with_headers("Content-Encoding: identity\r\nContent-Length: 1\r\n") + "x", "POST / x"},
      {chunked("0003;a=\"b c\"\r\nabc\r\n00\r\n\r\n"), "POST / abc"},
      {"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "BREW / "},
  };
  Client client(server);
  for (const auto& [request, expected] : requests) EXPECT_EQ(client.ask(request).body, expected) << request;
}

TEST(HttpLimits, RefusesWhatIsTooLarge) {
  RunningServer server(echo);
  const auto status_of = [&](const std::string& request) {
    Client client(server);
    client.send(request);
    const Received response = client.response();
    EXPECT_TRUE(client.sees_close());
    return response.status;
  };
  std::string many;
  for (int i = 0; i < 100; ++i) many += "X: y\r\n";  // and Host
  EXPECT_EQ(status_of(with_headers(many)), 431);
  EXPECT_EQ(status_of(with_headers("X: " + std::string(17 << 10, 'x') + "\r\n")), 431);
  EXPECT_EQ(status_of(with_headers("X: " + std::string(17 << 10, 'x'))), 431);  // and never ends
  EXPECT_EQ(status_of("GET /" + std::string(9 << 10, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status_of("GET /" + std::string(20 << 10, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n"), 414);
  EXPECT_EQ(status_of("GET /" + std::string(9 << 10, 'x')), 414);  // and never ends

  Client within(server);
  std::string enough;
  for (int i = 0; i < 99; ++i) enough += "X: y\r\n";
  EXPECT_EQ(within.ask(with_headers(enough)).status, 200);
  EXPECT_EQ(within.ask("GET /" + std::string((8 << 10) - 1, 'x') + " HTTP/1.1\r\nHost: a\r\n\r\n").status,
            200);
}

TEST(HttpLimits, RefusesALargeBodyBeforeItIsRead) {
  HttpOptions options = any_port();
  options.max_body = 1000;
  RunningServer server(echo, options);
  EXPECT_EQ(Client(server).ask(with_headers("Content-Length: 1001\r\n")).status, 413);
  EXPECT_EQ(Client(server).ask(with_headers("Expect: 100-continue\r\nContent-Length: 1001\r\n")).status, 413);
  EXPECT_EQ(Client(server).ask(chunked("3e9\r\n")).status, 413);
  EXPECT_EQ(Client(server).ask(chunked("3e8\r\n" + std::string(1000, 'x') + "\r\n1\r\n")).status, 413);
  EXPECT_EQ(Client(server).ask(post(std::string(1000, 'x'))).status, 200);
}

TEST(HttpLimits, AClientThatSendsItsWholeBodyStillReadsTheRefusal) {
  RunningServer server(echo);
  Client client(server);
  client.send(with_headers("Content-Length: 20000000\r\n"));
  std::thread sender([&] { client.send(std::string(20'000'000, 'x')); });
  EXPECT_EQ(client.response().status, 413);
  sender.join();
}

TEST(HttpLimits, RefusesAMillionTinyChunks) {
  RunningServer server(echo);
  Client client(server);
  client.send(chunked(""));
  std::string tiny;
  for (int i = 0; i < 10'000; ++i) tiny += "1\r\nx\r\n";
  for (int i = 0; i < 100 && client.send(tiny); ++i) {}
  EXPECT_EQ(client.response().status, 413);
}

TEST(HttpLimits, ReadsABodyOfTheLargestSize) {
  std::size_t size = 0;
  RunningServer server([&](const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
    size = request.body.size();
    exchange->respond({});
  });
  EXPECT_EQ(Client(server).ask(post(std::string(8 << 20, 'x'))).status, 200);
  EXPECT_EQ(size, std::size_t{8} << 20);
}

constexpr std::size_t mebibyte = std::size_t{1} << 20;

// Room for the bodies of two requests of a mebibyte.
HttpOptions little_memory() {
  HttpOptions options = any_port();
  options.max_body = mebibyte;
  options.max_body_memory = 2 * mebibyte;
  return options;
}

// Sends all but the last byte of a body.
void send_almost_all(Client& client) {
  client.send(with_headers("Content-Length: " + std::to_string(mebibyte) + "\r\n"));
  client.send(std::string(mebibyte - 1, 'x'));
}

TEST(HttpLimits, RefusesBodiesThatTogetherTakeTooMuchMemory) {
  RunningServer server(echo, little_memory());
  Client first(server), second(server);
  send_almost_all(first);
  send_almost_all(second);
  // Once both were read, a third one is refused by its head, and one without a length as soon as it is large.
  EXPECT_TRUE(eventually([&] {
    Client third(server);
    third.send(with_headers("Content-Length: 200000\r\n"));
    third.receive_more(milliseconds(50));
    return third.held().starts_with("HTTP/1.1 503 ");
  }));
  Client fourth(server);
  fourth.send(chunked("100000\r\n" + std::string(mebibyte / 2, 'x')));
  const Received refusal = fourth.response();
  EXPECT_EQ(refusal.status, 503);
  EXPECT_TRUE(refusal.has("Connection: close\r\n"));
  EXPECT_NE(refusal.body.find("no memory left for the body"), std::string::npos) << refusal.body;

  EXPECT_EQ(Client(server).ask(post("small")).status, 200);
  EXPECT_EQ(first.ask("x").status, 200);
  EXPECT_EQ(second.ask("x").status, 200);
  EXPECT_EQ(Client(server).ask(post(std::string(mebibyte, 'x'))).status, 200);
}

TEST(HttpLimits, GivesBackTheMemoryOfBodiesWhoseClientsLeft) {
  RunningServer server(echo, little_memory());
  for (int round = 0; round < 3; ++round) {
    Client first(server), second(server);
    send_almost_all(first);
    send_almost_all(second);
    first.reset();
    second.shut_down_sending();
    EXPECT_EQ(second.response().status, 400);
  }
  EXPECT_TRUE(eventually([&] { return Client(server).ask(post(std::string(mebibyte, 'x'))).status == 200; }));
}

TEST(HttpLimits, CountsABodyUntilItsRequestIsGone) {
  std::mutex mutex;
  std::vector<HttpRequest> kept;
  RunningServer server(
      [&](HttpRequest request, const std::shared_ptr<Exchange>& exchange) {
        const std::lock_guard lock(mutex);
        kept.push_back(std::move(request));
        exchange->respond({});
      },
      little_memory());
  for (const int status : {200, 200, 503})
    EXPECT_EQ(Client(server).ask(post(std::string(mebibyte, 'x'))).status, status);
  {
    const std::lock_guard lock(mutex);
    kept.clear();
  }
  EXPECT_EQ(Client(server).ask(post(std::string(mebibyte, 'x'))).status, 200);
}

HttpOptions impatient() {
  HttpOptions options = any_port();
  options.head_timeout = milliseconds(100);
  options.body_timeout = milliseconds(100);
  options.write_timeout = milliseconds(200);
  options.idle_timeout = milliseconds(300);
  return options;
}

// Sends one byte now and then until the server closes; how long that took.
milliseconds drip(Client& client) {
  const auto start = std::chrono::steady_clock::now();
  while (since(start) < milliseconds(3000) && client.send("x") && client.held().empty()) {
    client.receive_more(milliseconds(10));
  }
  return since(start);
}

TEST(HttpLimits, ClosesWhenAHeadDoesNotArriveInTime) {
  RunningServer server(echo, impatient());
  Client silent(server);
  EXPECT_TRUE(silent.sees_close(milliseconds(1000)));
  EXPECT_EQ(silent.held(), "");

  Client slow(server);
  slow.send("GET / HTTP/1.1\r\nX: ");
  EXPECT_LT(drip(slow), milliseconds(1000));
  EXPECT_EQ(slow.response().status, 408);
}

TEST(HttpLimits, ClosesWhenABodyDripsOrStalls) {
  RunningServer server(echo, impatient());
  Client stalled(server);
  stalled.send(with_headers("Content-Length: 100\r\n") + "x");
  EXPECT_EQ(stalled.response().status, 408);
  EXPECT_TRUE(stalled.sees_close());

  Client slow(server);
  slow.send(with_headers("Content-Length: 100000\r\n"));
  EXPECT_LT(drip(slow), milliseconds(1000));
  EXPECT_EQ(slow.response().status, 408);
}

TEST(HttpLimits, ClosesAnIdleConnection) {
  RunningServer server(echo, impatient());
  Client client(server);
  EXPECT_EQ(client.get().status, 200);
  std::this_thread::sleep_for(milliseconds(150));  // longer than a head may take
  EXPECT_EQ(client.get().status, 200);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(client.sees_close(milliseconds(2000)));
  EXPECT_GE(since(start), milliseconds(250));
  EXPECT_EQ(client.held(), "");
}

TEST(HttpLimits, AnswersARequestThatEndsTooEarly) {
  RunningServer server(echo);
  for (const std::string& request :
       {std::string("GET / HT"), with_headers("Content-Length: 5\r\n") + "hel"}) {
    Client client(server);
    client.send(request);
    client.shut_down_sending();
    EXPECT_EQ(client.response().status, 400);
    EXPECT_TRUE(client.sees_close());
  }
}

// Streams until the client is disconnected.
Handle endless(Event& gone) {
  return [&gone](const HttpRequest&, const std::shared_ptr<Exchange>& exchange) {
    const auto stop = std::make_shared<std::atomic<bool>>(false);
    exchange->on_disconnect([&gone, stop] {
      *stop = true;
      gone.set();
    });
    exchange->begin({}, "");
    std::thread([exchange, stop] {
      const std::string piece(10'000, 'x');
      for (int i = 0; i < 2000 && !*stop; ++i) exchange->write(piece);
      while (!*stop) std::this_thread::sleep_for(milliseconds(1));
    }).detach();
  };
}

TEST(HttpLimits, DisconnectsAClientThatDoesNotRead) {
  Event stalled, flooded;
  HttpOptions small = any_port();
  small.max_unsent = 100'000;
  {
    RunningServer server(endless(flooded), small);
    Client client(server);
    client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_TRUE(flooded.wait());
  }
  HttpOptions quick = any_port();
  quick.write_timeout = milliseconds(100);
  quick.max_unsent = std::size_t{1} << 30;
  RunningServer server(endless(stalled), quick);
  Client client(server);
  client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_TRUE(stalled.wait());
}

TEST(HttpLimits, RefusesConnectionsBeyondTheLimit) {
  HttpOptions options = any_port();
  options.max_connections = 3;
  RunningServer server(echo, options);
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.emplace_back(server);
    EXPECT_EQ(clients.back().get().status, 200);
  }
  Client excess(server);
  EXPECT_EQ(excess.response().status, 503);
  EXPECT_TRUE(excess.sees_close());
  EXPECT_EQ(server.http.counts().refused, 1u);
  EXPECT_EQ(clients.front().get().status, 200);
  clients.pop_back();
  EXPECT_TRUE(eventually([&] { return server.http.counts().connections == 2; }));
  EXPECT_EQ(Client(server).get().status, 200);
}

// An IPv4 address of this machine that others can reach; empty if it has none.
std::string outside_address() {
  std::string found;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return found;
  for (const ifaddrs* each = interfaces; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_LOOPBACK) != 0 || (each->ifa_flags & IFF_UP) == 0) continue;
    char text[INET_ADDRSTRLEN];
    const auto* address = reinterpret_cast<const sockaddr_in*>(each->ifa_addr);
    found = ::inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
  }
  ::freeifaddrs(interfaces);
  return found;
}

TEST(HttpLimits, LimitsTheConnectionsOfOneAddressButNotOfThisMachine) {
  const std::string outside = outside_address();
  if (outside.empty()) GTEST_SKIP() << "this machine has no other address";
  HttpOptions options = any_port();
  options.host = "0.0.0.0";
  options.max_connections_per_address = 2;
  RunningServer server(echo, options);
  std::vector<Client> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(server, outside.c_str());
    EXPECT_EQ(clients.back().get().status, 200);
  }
  EXPECT_EQ(Client(server, outside.c_str()).response().status, 503);
  for (int i = 0; i < 4; ++i) {
    clients.emplace_back(server);
    EXPECT_EQ(clients.back().get().status, 200);
  }
  clients.front().close();
  EXPECT_TRUE(eventually([&] { return server.http.counts().connections == 5; }));
  EXPECT_EQ(Client(server, outside.c_str()).get().status, 200);
}

TEST(HttpLimits, SurvivesALackOfDescriptors) {
  RunningServer server(echo);
  Client before(server);
  EXPECT_EQ(before.get().status, 200);
  std::vector<Client> clients;
  for (int i = 0; i < 20; ++i) clients.emplace_back(server);
  ASSERT_TRUE(eventually([&] { return server.http.counts().connections == 21; }));
  // Sockets of the clients exist already: only the server needs new descriptors.
  std::vector<int> sockets;
  for (int i = 0; i < 5; ++i) sockets.push_back(::socket(AF_INET, SOCK_STREAM, 0));
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  const rlimit low{.rlim_cur = static_cast<rlim_t>(sockets.back() + 1), .rlim_max = limit.rlim_max};
  ::setrlimit(RLIMIT_NOFILE, &low);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<std::uint16_t>(server.http.port()));
  for (const int socket : sockets) ::connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address);
  EXPECT_TRUE(eventually([&] { return server.http.counts().refused == 5; }));
  EXPECT_EQ(before.get().status, 200);
  ::setrlimit(RLIMIT_NOFILE, &limit);
  for (const int socket : sockets) ::close(socket);
  EXPECT_EQ(Client(server).get().status, 200);
}

}  // namespace
}  // namespace inferno::server
