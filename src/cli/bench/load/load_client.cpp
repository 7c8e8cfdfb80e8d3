#include "cli/bench/load/load_client.h"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/seconds.h"
#include "base/utf8.h"

namespace inferno::load {
namespace {

using Clock = std::chrono::steady_clock;

bool wait_for(int socket, short events, double seconds) {
  pollfd waiting = {.fd = socket, .events = events, .revents = 0};
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) return true;
    if (ready == 0 || errno != EINTR) return false;
  }
}

int error_of(int socket) {
  int error = 0;
  socklen_t length = sizeof error;
  ::getsockopt(socket, SOL_SOCKET, SO_ERROR, &error, &length);
  return error;
}

// A test may need more connections than the usual 1,024 descriptors.
void raise_descriptor_limit() {
  rlimit limit = {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::string shortened(std::string_view text) {
  return printable(std::string(text.substr(0, 400)));
}

// One request on a connection of its own.
struct Stream {
  std::size_t number = 0;
  hub::Descriptor socket;
  std::string unsent;
  EventStream response;
  double last_bytes = 0.0;
  int events = 0;  // with text
};

class Client final : public Target {
 public:
  Client(const ServerAddress& server, ClientOptions options)
      : server_(server), options_(std::move(options)), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_.is_open()) fail(ErrorKind::io, fmt::format("epoll_create: {}", std::strerror(errno)));
  }

  void start(std::size_t number, Records& records) override {
    auto stream = std::make_unique<Stream>();
    stream->number = number;
    stream->unsent = options_.request(number);
    stream->last_bytes = records.now();
    stream->socket = server_.connect();
    if (!stream->socket.is_open()) {
      finish(*stream, fmt::format("cannot connect: {}", std::strerror(errno)), records);
      return;
    }
    epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data = {.ptr = stream.get()}};
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, stream->socket.number(), &event) != 0) {
      finish(*stream, fmt::format("epoll: {}", std::strerror(errno)), records);
      return;
    }
    streams_.push_back(std::move(stream));
  }

  void wait(double seconds, Records& records) override {
    const int milliseconds = static_cast<int>(std::ceil(seconds * 1e3));
    const int count =
        ::epoll_wait(epoll_.number(), ready_.data(), static_cast<int>(ready_.size()), milliseconds);
    for (int i = 0; i < count; ++i) {
      Stream& stream = *static_cast<Stream*>(ready_[static_cast<std::size_t>(i)].data.ptr);
      if (!stream.unsent.empty()) send(stream, records);
      if (ready_[static_cast<std::size_t>(i)].events != EPOLLOUT) receive(stream, records);
    }
    end_stalled(records);
    if (std::exchange(has_closed_, false)) {
      std::erase_if(streams_, [](const auto& stream) { return !stream->socket.is_open(); });
    }
  }

 private:
  void send(Stream& stream, Records& records) {
    const ssize_t count =
        ::send(stream.socket.number(), stream.unsent.data(), stream.unsent.size(), MSG_NOSIGNAL);
    if (count < 0) {
      // A server may answer and close before it has read everything; receive() then has the reason.
      if (errno == EPIPE || errno == ECONNRESET) {
        stream.unsent.clear();
      } else if (errno != EAGAIN && errno != EINTR) {
        finish(stream, fmt::format("cannot send: {}", std::strerror(errno)), records);
      }
      return;
    }
    stream.unsent.erase(0, static_cast<std::size_t>(count));
    if (!stream.unsent.empty()) return;
    epoll_event event = {.events = EPOLLIN, .data = {.ptr = &stream}};
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, stream.socket.number(), &event);
  }

  void receive(Stream& stream, Records& records) {
    if (!stream.socket.is_open()) return;
    const ssize_t count = ::recv(stream.socket.number(), buffer_.data(), buffer_.size(), 0);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) finish(stream, std::strerror(errno), records);
      return;
    }
    const double time = stream.last_bytes = records.now();
    if (count == 0) {
      stream.response.close();
    } else {
      stream.response.read({buffer_.data(), static_cast<std::size_t>(count)});
    }
    // All events of one read arrived at the same time.
    for (; stream.events < stream.response.text_events(); ++stream.events) {
      records.add_text(stream.number, time);
    }
    if (count == 0 || is_over(stream.response)) finish(stream, problem_of(stream.response), records);
  }

  static bool is_over(const EventStream& response) {
    return response.is_whole() || response.saw_end() || !response.problem().empty();
  }

  static std::string problem_of(const EventStream& response) {
    if (!response.problem().empty()) return shortened(response.problem());
    if (response.status() == 0) return "the server closed the connection without a response";
    if (response.status() != 200) {
      return fmt::format("status {}: {}", response.status(), shortened(response.body()));
    }
    if (response.saw_end() || response.usage_event()) return {};
    if (response.is_whole() && response.text_events() > 0) return {};
    return response.body().empty() ? "the stream ended early"
                                   : "the response is no event stream: " + shortened(response.body());
  }

  void finish(Stream& stream, std::string problem, Records& records) {
    RequestRecord& record = records.of(stream.number);
    record.output_tokens = stream.response.text_events();
    if (stream.response.usage_event()) take_usage(record, *stream.response.usage_event());
    const Outcome outcome = problem.empty()                   ? Outcome::finished
                            : stream.response.status() == 429 ? Outcome::refused
                                                              : Outcome::failed;
    records.end(stream.number, outcome, std::move(problem));
    stream.socket = hub::Descriptor();
    has_closed_ = true;
  }

  static void take_usage(RequestRecord& record, const std::string& event) {
    const auto json = nlohmann::json::parse(event, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return;
    const auto& usage = json["usage"];
    record.input_tokens = usage.value("prompt_tokens", record.input_tokens);
    record.output_tokens = usage.value("completion_tokens", record.output_tokens);
  }

  void end_stalled(Records& records) {
    const double time = records.now();
    if (time - last_check_ < 1.0) return;
    last_check_ = time;
    for (const auto& stream : streams_) {
      if (!stream->socket.is_open()) continue;
      if (time - stream->last_bytes > options_.stall_seconds) finish(*stream, "timed out", records);
    }
  }

  const ServerAddress& server_;
  ClientOptions options_;
  hub::Descriptor epoll_;
  double last_check_ = 0.0;
  bool has_closed_ = false;  // among streams_
  std::vector<std::unique_ptr<Stream>> streams_;
  std::array<epoll_event, 256> ready_;
  std::array<char, std::size_t{64} << 10> buffer_;
};

}  // namespace

ServerAddress::ServerAddress(const HttpTarget& target, std::string key)
    : target_(target), key_(std::move(key)) {
  addrinfo hints{}, *found = nullptr;
  hints.ai_socktype = SOCK_STREAM;
  if (const int code = ::getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found); code != 0) {
    fail(ErrorKind::network, fmt::format("{}: {}", target.authority, ::gai_strerror(code)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
  int error = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    std::memcpy(&address_, one->ai_addr, one->ai_addrlen);
    length_ = one->ai_addrlen;
    const hub::Descriptor socket = connect();
    error = !socket.is_open()                          ? errno
            : wait_for(socket.number(), POLLOUT, 10.0) ? error_of(socket.number())
                                                       : ETIMEDOUT;
    if (error == 0) return;
  }
  fail(ErrorKind::network, fmt::format("http://{}: {}", target.authority, std::strerror(error)),
       {.why = {}, .next = "start a server first, for example: inferno serve --port " + target.port});
}

std::string ServerAddress::request(std::string_view method, std::string_view path,
                                   std::string_view body) const {
  std::string out = fmt::format(
      "{} {}{} HTTP/1.1\r\nHost: {}\r\nUser-Agent: inferno-bench\r\nAccept: */*\r\nConnection: close\r\n",
      method, target_.path, path, target_.authority);
  if (!key_.empty()) out += fmt::format("Authorization: Bearer {}\r\n", key_);
  if (!body.empty()) {
    out += fmt::format("Content-Type: application/json\r\nContent-Length: {}\r\n", body.size());
  }
  return out.append("\r\n").append(body);
}

hub::Descriptor ServerAddress::connect() const {
  hub::Descriptor socket(::socket(address_.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return socket;
  const int on = 1;
  ::setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const int code = ::connect(socket.number(), reinterpret_cast<const sockaddr*>(&address_), length_);
  if (code != 0 && errno != EINPROGRESS) return hub::Descriptor();
  return socket;
}

EventStream exchange(const ServerAddress& server, const std::string& request, double seconds) {
  const auto fail_with = [&](const std::string& why) {
    fail(ErrorKind::network, fmt::format("http://{}: {}", server.target().authority, why));
  };
  const auto start = Clock::now();
  const hub::Descriptor socket = server.connect();
  if (!socket.is_open()) fail_with(std::strerror(errno));
  std::string_view unsent = request;
  EventStream response;
  std::array<char, 16384> buffer;
  while (!response.is_whole() && !response.saw_end() && response.problem().empty()) {
    const short events = unsent.empty() ? POLLIN : POLLOUT;
    if (!wait_for(socket.number(), events, seconds - seconds_since(start))) fail_with("timed out");
    const ssize_t count = unsent.empty()
                              ? ::recv(socket.number(), buffer.data(), buffer.size(), 0)
                              : ::send(socket.number(), unsent.data(), unsent.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) fail_with(std::strerror(errno));
    if (count == 0) {
      response.close();
      break;
    }
    if (count < 0) continue;
    if (unsent.empty()) {
      response.read({buffer.data(), static_cast<std::size_t>(count)});
    } else {
      unsent.remove_prefix(static_cast<std::size_t>(count));
    }
  }
  if (response.status() == 0) {
    fail_with(response.problem().empty() ? "the server closed the connection" : response.problem());
  }
  return response;
}

std::unique_ptr<Target> make_server_target(const ServerAddress& server, ClientOptions options) {
  raise_descriptor_limit();
  return std::make_unique<Client>(server, std::move(options));
}

}  // namespace inferno::load
