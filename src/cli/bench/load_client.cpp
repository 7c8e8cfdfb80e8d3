#include "cli/bench/load_client.h"

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

#include "base/error.h"
#include "base/seconds.h"
#include "base/signals.h"
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
  hub::Descriptor socket;
  std::string unsent;
  EventStream response;
  RequestRecord record;
  double last_event = 0.0;  // with text
  double last_bytes = 0.0;
  int events = 0;
};

class Client {
 public:
  Client(const ServerAddress& server, const LoadRun& run)
      : server_(server), run_(run), epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (!epoll_.is_open()) fail(ErrorKind::io, fmt::format("epoll_create: {}", std::strerror(errno)));
  }

  LoadResult run() {
    while (next_ < run_.plan.size() || !streams_.empty()) {
      if (SignalWatcher::received() != 0) return {.records = std::move(done_), .was_interrupted = true};
      start_due();
      wait();
      end_stalled();
    }
    return {.records = std::move(done_), .was_interrupted = false};
  }

 private:
  double now() const { return seconds_since(begin_); }

  bool has_room() const {
    return run_.max_streams == 0 || streams_.size() < static_cast<std::size_t>(run_.max_streams);
  }

  void start_due() {
    while (next_ < run_.plan.size() && has_room() && run_.plan[next_].at <= now()) start(next_++);
  }

  void start(std::size_t number) {
    auto stream = std::make_unique<Stream>();
    stream->unsent = run_.request(number);
    stream->record.input_tokens = run_.plan[number].input_tokens;
    stream->record.start = stream->last_bytes = now();
    stream->socket = server_.connect();
    if (!stream->socket.is_open()) {
      finish(*stream, fmt::format("cannot connect: {}", std::strerror(errno)));
      return;
    }
    epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data = {.ptr = stream.get()}};
    if (::epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, stream->socket.number(), &event) != 0) {
      finish(*stream, fmt::format("epoll: {}", std::strerror(errno)));
      return;
    }
    streams_.push_back(std::move(stream));
  }

  // Until something happens, the next request is due, or a while has passed.
  void wait() {
    double seconds = 0.2;
    if (next_ < run_.plan.size() && has_room()) seconds = std::min(seconds, run_.plan[next_].at - now());
    const int milliseconds = static_cast<int>(std::ceil(std::max(0.0, seconds) * 1e3));
    const int count =
        ::epoll_wait(epoll_.number(), ready_.data(), static_cast<int>(ready_.size()), milliseconds);
    for (int i = 0; i < count; ++i) {
      Stream& stream = *static_cast<Stream*>(ready_[static_cast<std::size_t>(i)].data.ptr);
      if (!stream.unsent.empty()) send(stream);
      if (ready_[static_cast<std::size_t>(i)].events != EPOLLOUT) receive(stream);
    }
    drop_closed();
  }

  void drop_closed() {
    if (std::exchange(has_closed_, false)) {
      std::erase_if(streams_, [](const auto& stream) { return !stream->socket.is_open(); });
    }
  }

  void send(Stream& stream) {
    const ssize_t count =
        ::send(stream.socket.number(), stream.unsent.data(), stream.unsent.size(), MSG_NOSIGNAL);
    if (count < 0) {
      // A server may answer and close before it has read everything; receive() then has the reason.
      if (errno == EPIPE || errno == ECONNRESET) {
        stream.unsent.clear();
      } else if (errno != EAGAIN && errno != EINTR) {
        finish(stream, fmt::format("cannot send: {}", std::strerror(errno)));
      }
      return;
    }
    stream.unsent.erase(0, static_cast<std::size_t>(count));
    if (!stream.unsent.empty()) return;
    epoll_event event = {.events = EPOLLIN, .data = {.ptr = &stream}};
    ::epoll_ctl(epoll_.number(), EPOLL_CTL_MOD, stream.socket.number(), &event);
  }

  void receive(Stream& stream) {
    if (!stream.socket.is_open()) return;
    const ssize_t count = ::recv(stream.socket.number(), buffer_.data(), buffer_.size(), 0);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) finish(stream, std::strerror(errno));
      return;
    }
    const double time = stream.last_bytes = now();
    if (count == 0) {
      stream.response.close();
    } else {
      stream.response.read({buffer_.data(), static_cast<std::size_t>(count)});
    }
    note_events(stream, time);
    if (count == 0 || is_over(stream.response)) finish(stream, problem_of(stream.response));
  }

  // All events of one read arrived at the same time.
  static void note_events(Stream& stream, double time) {
    for (; stream.events < stream.response.text_events(); ++stream.events) {
      if (stream.events == 0) {
        stream.record.first_token = time;
      } else {
        stream.record.gaps.push_back(static_cast<float>(time - stream.last_event));
      }
      stream.last_event = time;
    }
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

  void finish(Stream& stream, std::string problem) {
    RequestRecord& record = stream.record;
    record.end = now();
    record.output_tokens = stream.response.text_events();
    if (stream.response.usage_event()) take_usage(record, *stream.response.usage_event());
    record.outcome = problem.empty()                   ? Outcome::finished
                     : stream.response.status() == 429 ? Outcome::refused
                                                       : Outcome::failed;
    record.problem = std::move(problem);
    stream.socket = hub::Descriptor();
    has_closed_ = true;
    done_.push_back(std::move(record));
  }

  static void take_usage(RequestRecord& record, const std::string& event) {
    const auto json = nlohmann::json::parse(event, nullptr, /*allow_exceptions=*/false);
    if (json.is_discarded()) return;
    const auto& usage = json["usage"];
    record.input_tokens = usage.value("prompt_tokens", record.input_tokens);
    record.output_tokens = usage.value("completion_tokens", record.output_tokens);
  }

  void end_stalled() {
    const double time = now();
    if (time - last_check_ < 1.0) return;
    last_check_ = time;
    for (const auto& stream : streams_) {
      if (time - stream->last_bytes > run_.stall_seconds) finish(*stream, "timed out");
    }
    drop_closed();
  }

  const ServerAddress& server_;
  const LoadRun& run_;
  hub::Descriptor epoll_;
  Clock::time_point begin_ = Clock::now();
  std::size_t next_ = 0;
  double last_check_ = 0.0;
  bool has_closed_ = false;  // among streams_
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<RequestRecord> done_;
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

LoadResult run_load(const ServerAddress& server, const LoadRun& run) {
  raise_descriptor_limit();
  return Client(server, run).run();
}

}  // namespace inferno::load
