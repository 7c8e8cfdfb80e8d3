// `inferno health`: asks a running server whether it works, for images without curl. Plain sockets, because
// such images need not have libcurl either.
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/bench/load/http_target.h"
#include "cli/commands/shared/command_line.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"
#include "hub/files.h"

namespace inferno::command {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string url = "http://127.0.0.1:8000";
  float seconds = 5;
};

// One exchange that must end at a deadline. Each function returns what went wrong, empty if nothing did.
class Probe {
 public:
  explicit Probe(Clock::time_point end) : end_(end) {}

  std::string connect(const HttpTarget& target) {
    addrinfo hints{}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int code = ::getaddrinfo(target.host.c_str(), target.port.c_str(), &hints, &found); code != 0) {
      return ::gai_strerror(code);
    }
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> addresses(found, ::freeaddrinfo);
    std::string problem;
    for (const addrinfo* address = found; address != nullptr; address = address->ai_next) {
      problem = connect_to(*address);
      if (problem.empty()) break;
    }
    return problem;
  }

  std::string send(std::string_view text) {
    while (!text.empty()) {
      if (!wait_for(POLLOUT)) return "timed out";
      const ssize_t count = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
      if (count < 0 && errno != EAGAIN && errno != EINTR) return std::strerror(errno);
      if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  // Until the server closes the connection or has sent a lot.
  std::string receive(std::string& response) {
    constexpr std::size_t max_response = std::size_t{64} << 10;
    char buffer[4096];
    while (response.size() < max_response) {
      if (!wait_for(POLLIN)) return "timed out";
      const ssize_t count = ::recv(socket_.number(), buffer, sizeof buffer, 0);
      if (count == 0) break;
      if (count < 0 && errno != EAGAIN && errno != EINTR) return std::strerror(errno);
      if (count > 0) response.append(buffer, static_cast<std::size_t>(count));
    }
    return {};
  }

 private:
  std::string connect_to(const addrinfo& address) {
    socket_ = hub::Descriptor(
        ::socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, address.ai_protocol));
    if (!socket_.is_open()) return std::strerror(errno);
    if (::connect(socket_.number(), address.ai_addr, address.ai_addrlen) == 0) return {};
    if (errno != EINPROGRESS) return std::strerror(errno);
    if (!wait_for(POLLOUT)) return "timed out";
    int error = 0;
    socklen_t length = sizeof error;
    ::getsockopt(socket_.number(), SOL_SOCKET, SO_ERROR, &error, &length);
    return error == 0 ? std::string() : std::strerror(error);
  }

  bool wait_for(short events) const {
    pollfd waiting = {.fd = socket_.number(), .events = events, .revents = 0};
    while (true) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(end_ - Clock::now()).count();
      const int ready = ::poll(&waiting, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
      if (ready > 0) return true;
      if (ready == 0 || errno != EINTR) return false;
    }
  }

  Clock::time_point end_;
  hub::Descriptor socket_;
};

// What is wrong with the server; empty if it is healthy.
std::string problem_of(const HttpTarget& target, double seconds) {
  Probe probe(Clock::now() +
              std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  if (std::string problem = probe.connect(target); !problem.empty()) return problem;
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: inferno\r\nConnection: close\r\n\r\n",
                  target.path, target.authority);
  if (std::string problem = probe.send(request); !problem.empty()) return problem;
  std::string response;
  if (std::string problem = probe.receive(response); !problem.empty() && response.empty()) return problem;
  const bool is_http = response.starts_with("HTTP/1.") && response.size() >= 12;
  if (!is_http) return "the response is not HTTP";
  const int status = std::atoi(response.substr(9, 3).c_str());
  if (status >= 200 && status < 300) return {};
  const std::size_t body = response.find("\r\n\r\n");
  const std::string shown = body == std::string::npos ? std::string() : response.substr(body + 4, 400);
  return fmt::format("status {}: {}", status, printable(shown));
}

void run(const Options& options) {
  HttpTarget target = http_target(options.url);
  if (target.path.empty()) target.path = "/health";
  const std::string problem = problem_of(target, options.seconds);
  if (problem.empty()) {
    fmt::print("ok\n");
    return;
  }
  say(fmt::format("not healthy: http://{}{}: {}\n", target.authority, target.path, problem));
  throw Exit{1};
}

}  // namespace

void health(CommandLine app) {
  const Command command = app.command("health", "Ask a running server whether it works: exit code 0 or 1");
  const auto options = std::make_shared<Options>();
  command
      .option("URL", options->url,
              "http://HOST:PORT, or with a path such as /readyz; /health is asked if there is none")
      .shows_default();
  command.option("--timeout", options->seconds, "seconds to wait for the whole response")
      .range(0.01, 3600.0)
      .shows_default();
  command.run([options] { run(*options); });
}

}  // namespace inferno::command
