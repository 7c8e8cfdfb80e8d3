// A server on a free port and clients that write to raw sockets, for tests.
#pragma once

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "server/http/http.h"

namespace inferno::server {

using std::chrono::milliseconds;
using Handle = std::function<void(HttpRequest, std::shared_ptr<Exchange>)>;

inline milliseconds since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start);
}

// True once `claim` is, false after five seconds.
inline bool eventually(const std::function<bool()>& claim) {
  const auto start = std::chrono::steady_clock::now();
  while (!claim()) {
    if (since(start) > milliseconds(5000)) return false;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return true;
}

// Something that happens once, on another thread.
class Event {
 public:
  void set() {
    const std::lock_guard lock(mutex_);
    happened_ = true;
    changed_.notify_all();
  }
  bool wait(milliseconds patience = milliseconds(5000)) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, patience, [this] { return happened_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool happened_ = false;
};

inline HttpOptions any_port() {
  HttpOptions options;
  options.port = 0;
  return options;
}

inline HttpHandler handler(Handle handle) {
  return {.admit = {},
          .handle = std::move(handle),
          .refuse = [](const HttpRequest*, int status, const std::string& message) -> HttpResponse {
            return {.status = status,
                    .headers = {{"Content-Type", "application/json"}},
                    .body = "{\"error\": " + std::to_string(status) + ", \"message\": \"" + message + "\"}"};
          }};
}

// Answers with the method, the path and the body.
inline void echo(const HttpRequest& request, const std::shared_ptr<Exchange>& exchange) {
  exchange->respond({.status = 200,
                     .headers = {{"Content-Type", "text/plain"}},
                     .body = request.method + " " + request.path + " " + request.body});
}

struct RunningServer {
  explicit RunningServer(Handle handle, HttpOptions options = any_port())
      : RunningServer(handler(std::move(handle)), std::move(options)) {}
  RunningServer(HttpHandler callbacks, HttpOptions options) : http(std::move(options), std::move(callbacks)) {
    http.start();
  }
  HttpServer http;
};

struct Received {
  int status = 0;
  std::string head, body;
  bool is_complete = false;
  bool has(std::string_view line) const { return head.find(line) != std::string::npos; }
};

class Client {
 public:
  explicit Client(const RunningServer& server, const char* host = "127.0.0.1") {
    const std::string port = std::to_string(server.http.port());
    addrinfo hints{};
    hints.ai_flags = AI_NUMERICHOST;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* address = nullptr;
    if (::getaddrinfo(host, port.c_str(), &hints, &address) != 0) throw std::runtime_error("no such address");
    socket_ = ::socket(address->ai_family, SOCK_STREAM, 0);
    const bool is_connected = ::connect(socket_, address->ai_addr, address->ai_addrlen) == 0;
    ::freeaddrinfo(address);
    if (!is_connected) {
      close();
      throw std::runtime_error("cannot connect");
    }
  }
  ~Client() { close(); }
  Client(Client&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)), held_(std::move(other.held_)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  Client& operator=(Client&&) = delete;

  int socket() const { return socket_; }
  void close() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
  }
  void reset() {
    const linger hard{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void shut_down_sending() { ::shutdown(socket_, SHUT_WR); }

  bool send(std::string_view text) {
    while (!text.empty()) {
      const ssize_t count = ::send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // False at the end of the connection, or if nothing comes in time.
  bool receive_more(milliseconds patience = milliseconds(5000)) {
    pollfd readable{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&readable, 1, static_cast<int>(patience.count())) <= 0) return false;
    char buffer[65536];
    const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
    if (count > 0) held_.append(buffer, static_cast<std::size_t>(count));
    is_closed_ = count <= 0;
    return count > 0;
  }
  // Whatever is sent until the server closes.
  std::string receive_all() {
    while (receive_more()) {}
    return std::exchange(held_, {});
  }
  bool sees_close(milliseconds patience = milliseconds(5000)) {
    while (receive_more(patience)) {}
    return is_closed_;
  }
  std::string receive_until(std::string_view end) {
    while (held_.find(end) == std::string::npos && receive_more()) {}
    const std::size_t found = held_.find(end);
    return take(found == std::string::npos ? held_.size() : found + end.size());
  }
  const std::string& held() const { return held_; }

  Received response(bool is_head = false) {
    Received result;
    result.head = receive_until("\r\n\r\n");
    if (result.head.size() < 12) return result;
    result.status = std::atoi(result.head.c_str() + 9);
    if (is_head || result.status == 100 || result.status == 204) {
      result.is_complete = true;
    } else if (result.has("Transfer-Encoding: chunked")) {
      read_chunks(result);
    } else if (const std::size_t at = result.head.find("Content-Length: "); at != std::string::npos) {
      const auto length = static_cast<std::size_t>(std::atoll(result.head.c_str() + at + 16));
      while (held_.size() < length && receive_more()) {}
      result.is_complete = held_.size() >= length;
      result.body = take(length);
    } else {
      result.body = receive_all();
      result.is_complete = true;
    }
    return result;
  }
  Received ask(std::string_view request) {
    send(request);
    return response();
  }
  Received get(std::string_view path = "/") {
    return ask("GET " + std::string(path) + " HTTP/1.1\r\nHost: a\r\n\r\n");
  }

 private:
  std::string take(std::size_t count) {
    std::string taken = held_.substr(0, count);
    held_.erase(0, count);
    return taken;
  }
  void read_chunks(Received& result) {
    while (true) {
      const std::string line = receive_until("\r\n");
      if (!line.ends_with("\r\n")) return;
      const std::size_t size = std::strtoul(line.c_str(), nullptr, 16);
      while (held_.size() < size + 2 && receive_more()) {}
      if (held_.size() < size + 2) return;
      result.body += take(size);
      take(2);
      if (size == 0) {
        result.is_complete = true;
        return;
      }
    }
  }

  int socket_ = -1;
  std::string held_;
  bool is_closed_ = false;
};

inline std::string post(std::string_view body, std::string_view headers = "") {
  return "POST /echo HTTP/1.1\r\nHost: a\r\n" + std::string(headers) +
         "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

}  // namespace inferno::server
