// HTTP/1.1 on one connection: requests in, responses out, limits and time-outs. Knows no sockets: bytes and
// events come from the connection, which does what Transport says.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/body_budget.h"
#include "server/http/channel.h"
#include "server/http/chunked.h"
#include "server/http/options.h"
#include "server/http/request_head.h"
#include "server/http/response.h"
#include "server/http/socket.h"

namespace inferno::server {

// What a session asks of its connection. Nothing here calls the session before it returns.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual void read() = 0;                         // then Session::on_read() or on_end()
  virtual void write(std::string_view bytes) = 0;  // valid until Session::on_written()
  virtual void finish_sending() = 0;
  virtual void close() = 0;  // the session wants no more events
  virtual PeerState peer_state() = 0;
  virtual std::function<void()> waker() = 0;  // thread-safe; has Session::listen() called
};

// What the sessions of a server share.
struct SessionHost {
  SessionHost(HttpOptions settings, HttpHandler callbacks)
      : options(std::move(settings)), handler(std::move(callbacks)) {}

  const HttpOptions options;
  const HttpHandler handler;
  const HeadLimits limits{options.max_head, options.max_headers, options.max_target};
  const std::shared_ptr<BodyBudget> bodies = std::make_shared<BodyBudget>(options.max_body_memory);
  bool is_stopping = false;  // every response is the last of its connection
  std::atomic<std::uint64_t> malformed{0};

  void add_busy(int change);
  bool wait_until_idle(std::chrono::milliseconds patience);
  HttpResponse refusal(const HttpRequest* head, int status, const std::string& message) const;

 private:
  std::mutex mutex_;
  std::condition_variable became_idle_;
  int busy_ = 0;  // requests whose response was not wholly sent
};

// Used by the server's thread alone.
class Session {
 public:
  using Clock = std::chrono::steady_clock;

  Session(SessionHost& host, Transport& transport, std::string peer);
  ~Session() = default;
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start();
  void on_read(std::string_view bytes);
  void on_end();  // the client closed, or it shut down its sending side and still reads
  void on_written(std::size_t count);
  void listen();                     // takes what the handler said
  void tick(Clock::time_point now);  // looks at the time-outs; called several times within each
  void drop();                       // closes at once, also after an error of the connection

 private:
  enum class Phase { head, body, handling, closing, closed };

  void read();
  void end_input();
  void advance();
  bool take_head();
  bool admit();
  void expect_body();
  void take_body();
  void hold_body();
  void dispatch();
  void respond(const HttpResponse& response);
  void refuse(const BadRequest& problem);
  void write();
  void finish_request();
  void close_gently();
  void check_peer();
  void set_busy(bool is_busy);
  std::size_t unsent() const { return queued_.size() + sending_.size() - sent_; }

  SessionHost& host_;
  Transport& transport_;
  const std::string peer_;
  Phase phase_ = Phase::head;
  Clock::time_point deadline_;  // of the phase

  std::string input_;  // received and not yet used
  bool is_reading_ = false;
  bool has_ended_ = false;  // the client sends no more

  HeadScanner scanner_;
  RequestHead head_;
  std::optional<ChunkedDecoder> chunks_;
  std::shared_ptr<BodyShare> body_share_;
  std::size_t body_received_ = 0;
  Clock::time_point body_begin_;

  bool is_busy_ = false;  // a request was taken, and its response was not wholly sent
  std::shared_ptr<Channel> channel_;
  std::string queued_, sending_;
  std::size_t sent_ = 0;  // bytes of sending_
  bool is_writing_ = false;
  ResponseEncoder encoder_;
  std::string ping_;
  bool was_probed_ = false;
  Clock::time_point write_deadline_, last_piece_;
};

}  // namespace inferno::server
