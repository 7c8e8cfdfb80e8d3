// Sockets, TLS and the one thread that runs every session (http/session.h); other threads come through
// Channel. All time-outs are checked by one timer that looks at every session a few times a second: moving a
// timer of its own with each token would cost more.
#include "server/http/http.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/steady_timer.hpp>
#include <concepts>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/error.h"
#include "server/http/response.h"
#include "server/http/session.h"
#include "server/http/socket.h"

namespace inferno::server {

namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

constexpr std::size_t read_size = 8192;
constexpr milliseconds max_tick{50}, min_tick{5};
constexpr milliseconds accept_pause{100};
constexpr int backlog = 4096;

class Connection;

// The way from other threads to the server's thread, until the server is destroyed.
class Gate {
 public:
  explicit Gate(asio::io_context& io) : io_(&io) {}
  void wake(std::weak_ptr<Connection> connection);
  void close() {
    const std::lock_guard lock(mutex_);
    io_ = nullptr;
  }

 private:
  std::mutex mutex_;
  asio::io_context* io_;
};

struct Listener {
  explicit Listener(asio::io_context& io) : acceptor(io), pause(io) {}
  tcp::acceptor acceptor;
  asio::steady_timer pause;  // after an error
};

struct Core {
  Core(HttpOptions settings, HttpHandler callbacks);
  ~Core();
  Core(const Core&) = delete;
  Core& operator=(const Core&) = delete;

  void listen_at(const asio::ip::address& address);
  void take_over(int descriptor);
  void run();
  void call_and_wait(const std::function<void()>& task);  // on the server's thread
  void accept(Listener& listener);
  void on_accept(Listener& listener, const error_code& error, tcp::socket socket);
  void accept_later(Listener& listener);
  void welcome(tcp::socket socket);
  void refuse(tcp::socket socket);
  void close_listeners();
  void schedule_tick();
  void forget(const std::shared_ptr<Connection>& connection);

  SessionHost host;
  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> work{io.get_executor()};
  const std::shared_ptr<Gate> gate = std::make_shared<Gate>(io);
  std::optional<asio::ssl::context> tls;
  std::deque<Listener> listeners;
  int port = 0;
  SpareDescriptor spare;
  asio::steady_timer ticker{io};
  bool is_ticking = false;
  std::unordered_set<std::shared_ptr<Connection>> connections;
  std::unordered_map<std::string, int> per_address;
  std::atomic<int> open{0};
  std::atomic<std::uint64_t> accepted{0}, refused{0};
  std::thread thread;
};

class Connection : public Transport, public std::enable_shared_from_this<Connection> {
 public:
  Connection(Core& server, std::string peer)
      : server_(server), peer_(std::move(peer)), session_(server.host, *this, peer_) {}
  virtual void start() = 0;
  void listen() {
    guard([this] { session_.listen(); });
  }
  void tick(Session::Clock::time_point now) {
    guard([&] { session_.tick(now); });
  }
  void drop() { session_.drop(); }
  const std::string& peer() const { return peer_; }

  std::function<void()> waker() override {
    return [gate = server_.gate, connection = weak_from_this()] { gate->wake(connection); };
  }

 protected:
  void on_read(const error_code& error, std::size_t count) {
    guard([&] {
      if (error == asio::error::eof) return session_.on_end();
      if (error) return session_.drop();
      session_.on_read(std::string_view(buffer_.data(), count));
    });
  }
  void on_written(const error_code& error, std::size_t count) {
    guard([&] { error ? session_.drop() : session_.on_written(count); });
  }

  Core& server_;
  const std::string peer_;
  Session session_;
  std::array<char, read_size> buffer_;

 private:
  // If memory runs out, this connection is lost, and no other.
  template <std::invocable Action>
  void guard(Action action) {
    try {
      action();
    } catch (const std::exception&) {
      session_.drop();
    }
  }
};

// A socket or a TLS stream around one.
template <typename Type>
concept SocketStream = requires(Type stream) { stream.lowest_layer().native_handle(); };

template <SocketStream Stream>
class ConnectionOver : public Connection {
 public:
  ConnectionOver(Core& server, std::string peer, Stream stream)
      : Connection(server, std::move(peer)), stream_(std::move(stream)) {}

  void start() override { session_.start(); }
  void read() override {
    stream_.async_read_some(asio::buffer(buffer_),
                            [this, self = shared_from_this()](const error_code& error, std::size_t count) {
                              on_read(error, count);
                            });
  }
  void write(std::string_view bytes) override {
    stream_.async_write_some(asio::buffer(bytes),
                             [this, self = shared_from_this()](const error_code& error, std::size_t count) {
                               on_written(error, count);
                             });
  }
  void finish_sending() override { stream_.lowest_layer().shutdown(tcp::socket::shutdown_send, ignored_); }
  void close() override {
    stream_.lowest_layer().close(ignored_);
    server_.forget(shared_from_this());
  }
  PeerState peer_state() override { return server::peer_state(stream_.lowest_layer().native_handle()); }

 protected:
  Stream stream_;
  error_code ignored_;
};
using PlainConnection = ConnectionOver<tcp::socket>;

class TlsConnection final : public ConnectionOver<asio::ssl::stream<tcp::socket>> {
 public:
  using ConnectionOver::ConnectionOver;

  void start() override {
    stream_.async_handshake(asio::ssl::stream_base::server,
                            [this, self = shared_from_this()](const error_code& error) {
                              if (error) return session_.drop();
                              session_.start();
                            });
  }
  void finish_sending() override {
    stream_.async_shutdown([this, self = shared_from_this()](const error_code&) { session_.drop(); });
  }
};

void Gate::wake(std::weak_ptr<Connection> connection) {
  const std::lock_guard lock(mutex_);
  if (io_ == nullptr) return;
  asio::post(*io_, [connection = std::move(connection)] {
    if (const auto alive = connection.lock()) alive->listen();
  });
}

// "localhost" is both of its addresses, if the machine has both.
std::vector<asio::ip::address> addresses_of(std::string host) {
  if (host == "localhost") return {asio::ip::address_v4::loopback(), asio::ip::address_v6::loopback()};
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  error_code error;
  const auto address = asio::ip::make_address(host, error);
  if (error) {
    fail(ErrorKind::invalid_request, fmt::format("host \"{}\" is neither an IP address nor localhost", host));
  }
  return {address};
}

asio::ip::address without_mapping(const asio::ip::address& address) {
  if (!address.is_v6() || !address.to_v6().is_v4_mapped()) return address;
  return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6());
}

Core::Core(HttpOptions settings, HttpHandler callbacks)
    : host(std::move(settings), std::move(callbacks)), port(host.options.port) {
  const HttpOptions& options = host.options;
  if (!options.certificate_file.empty() || !options.key_file.empty()) {
    tls.emplace(asio::ssl::context::tls_server);
    SSL_CTX_set_min_proto_version(tls->native_handle(), TLS1_2_VERSION);
    SSL_CTX_set_mode(tls->native_handle(), SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_options(tls->native_handle(), SSL_OP_NO_RENEGOTIATION);
    load_certificate(tls->native_handle(), options.certificate_file, options.key_file);
  }
  for (const int descriptor : options.listeners) take_over(descriptor);
  if (!listeners.empty()) {
    port = listeners.front().acceptor.local_endpoint().port();
    return;
  }
  for (const auto& address : addresses_of(options.host)) {
    try {
      listen_at(address);
    } catch (const Error&) {
      if (listeners.empty()) throw;
    }
    port = listeners.front().acceptor.local_endpoint().port();
  }
}

void Core::listen_at(const asio::ip::address& address) {
  error_code error;
  const tcp::endpoint endpoint(address, static_cast<std::uint16_t>(port));
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && address.is_v6()) acceptor.set_option(asio::ip::v6_only(!address.is_unspecified()), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(backlog, error);
  if (error) {
    fail(ErrorKind::io,
         fmt::format("cannot listen on {} port {}: {}", address.to_string(), port,
                     error == asio::error::address_in_use ? "the port is in use" : error.message()));
  }
  listeners.emplace_back(io).acceptor = std::move(acceptor);
}

void Core::take_over(int descriptor) {
  const tcp protocol = ip_version_of_listener(descriptor) == 4 ? tcp::v4() : tcp::v6();
  listeners.emplace_back(io).acceptor.assign(protocol, descriptor);
}

Core::~Core() {
  gate->close();
  asio::post(io, [this] {
    close_listeners();
    ticker.cancel();
    for (const auto& connection : std::vector(connections.begin(), connections.end())) connection->drop();
  });
  work.reset();
  if (thread.joinable()) {
    thread.join();
  } else {
    run();
  }
}

void Core::run() {
  while (true) {
    try {
      io.run();
      return;
    } catch (const std::exception&) {
      // Out of memory in a handler: the others go on.
    }
  }
}

void Core::call_and_wait(const std::function<void()>& task) {
  if (!thread.joinable()) return task();
  std::promise<void> done;
  asio::dispatch(io, [&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

void Core::accept(Listener& listener) {
  listener.acceptor.async_accept([this, &listener](const error_code& error, tcp::socket socket) {
    on_accept(listener, error, std::move(socket));
  });
}

void Core::on_accept(Listener& listener, const error_code& error, tcp::socket socket) {
  if (!listener.acceptor.is_open()) return;
  if (error == asio::error::no_descriptors || error == boost::system::errc::too_many_files_open_in_system) {
    if (!spare.refuse_connection(listener.acceptor.native_handle())) return accept_later(listener);
    ++refused;
  } else if (error == asio::error::no_memory || error == asio::error::no_buffer_space) {
    return accept_later(listener);
  } else if (!error) {
    try {
      welcome(std::move(socket));
    } catch (const std::exception&) {
      ++refused;  // out of memory: this connection is lost, and no other
    }
  }
  accept(listener);
}

void Core::accept_later(Listener& listener) {
  listener.pause.expires_after(accept_pause);
  listener.pause.async_wait([this, &listener](const error_code&) {
    if (listener.acceptor.is_open()) accept(listener);
  });
}

void Core::welcome(tcp::socket socket) {
  const HttpOptions& options = host.options;
  error_code error;
  const auto address = without_mapping(socket.remote_endpoint(error).address());
  if (error) return;  // the client left already
  ++accepted;
  const std::string peer = address.to_string();
  const auto same = per_address.find(peer);
  const bool is_one_too_many = !address.is_loopback() && same != per_address.end() &&
                               same->second >= options.max_connections_per_address;
  if (is_one_too_many || open >= options.max_connections) return refuse(std::move(socket));
  socket.set_option(tcp::no_delay(true), error);
  std::shared_ptr<Connection> connection;
  if (tls) {
    connection =
        std::make_shared<TlsConnection>(*this, peer, asio::ssl::stream<tcp::socket>(std::move(socket), *tls));
  } else {
    connection = std::make_shared<PlainConnection>(*this, peer, std::move(socket));
  }
  connections.insert(connection);
  ++per_address[peer];
  ++open;
  connection->start();
  if (!is_ticking) schedule_tick();
}

void Core::refuse(tcp::socket socket) {
  ++refused;
  if (tls) return;
  std::string text;
  ResponseEncoder encoder(text, host.options.idle_timeout);
  encoder.close_after_response();
  encoder.respond(host.refusal(nullptr, 503, "the server has too many open connections"));
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.send(asio::buffer(text), 0, ignored);
  socket.shutdown(tcp::socket::shutdown_send, ignored);
}

void Core::close_listeners() {
  error_code ignored;
  for (Listener& listener : listeners) {
    listener.acceptor.close(ignored);
    listener.pause.cancel();
  }
}

void Core::schedule_tick() {
  is_ticking = !connections.empty();
  if (!is_ticking) return;
  const HttpOptions& options = host.options;
  const milliseconds shortest = std::min({options.head_timeout, options.body_timeout, options.write_timeout,
                                          options.idle_timeout, options.ping_after});
  ticker.expires_after(std::clamp(shortest / 8, min_tick, max_tick));
  ticker.async_wait([this](const error_code& error) {
    if (error) return;
    const auto now = Session::Clock::now();
    for (const auto& connection : std::vector(connections.begin(), connections.end())) connection->tick(now);
    schedule_tick();
  });
}

void Core::forget(const std::shared_ptr<Connection>& connection) {
  connections.erase(connection);
  --open;
  const auto count = per_address.find(connection->peer());
  if (--count->second == 0) per_address.erase(count);
}

}  // namespace

struct HttpServer::Impl : Core {
  using Core::Core;
};

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() = default;

int HttpServer::port() const {
  return impl_->port;
}

void HttpServer::start() {
  for (Listener& listener : impl_->listeners) impl_->accept(listener);
  impl_->thread = std::thread([this] { impl_->run(); });
}

void HttpServer::stop_accepting() {
  impl_->call_and_wait([this] {
    impl_->host.is_stopping = true;
    impl_->close_listeners();
  });
}

bool HttpServer::wait_until_idle(milliseconds patience) {
  return impl_->host.wait_until_idle(patience);
}

HttpCounts HttpServer::counts() const {
  return {.connections = impl_->open,
          .accepted = impl_->accepted,
          .refused = impl_->refused,
          .malformed = impl_->host.malformed};
}

}  // namespace inferno::server
