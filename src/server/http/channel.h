// The way of a response from the handler's threads to the thread of its connection.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/http/exchange.h"

namespace inferno::server {

// What a handler said since the connection last listened.
struct Said {
  std::optional<HttpResponse> head;
  std::string pieces, ping;  // of a stream
  bool is_stream = false;    // `head` begins a stream; otherwise it is the whole response
  bool is_complete = false;
  bool is_dropped = false;  // the exchange, before its response was complete
  // Ends a stream: with this response if its head was not sent, else with `last_piece`.
  std::optional<HttpResponse> failure;
  std::string last_piece;
};

// Thread-safe. Serves one request; the exchange has one end, the connection the other.
class Channel {
 public:
  // `wake` asks the connection, from any thread, to listen(). One call can stand for many changes.
  explicit Channel(std::function<void()> wake) : wake_(std::move(wake)) {}

  // The connection's side.
  Said listen();
  void client_left();

  // The handler's side. What does not fit the stage of the response is ignored.
  void respond(HttpResponse response);
  void begin(HttpResponse head, std::string ping);
  void write(std::string_view piece);
  void finish();
  void abandon(HttpResponse response, std::string last_piece);
  void drop();  // the handler will say no more
  void on_disconnect(std::function<void()> gone);

 private:
  enum class Stage { silent, streaming, complete };
  void say(Stage needed, Stage then, const std::function<void(Said&)>& change);

  const std::function<void()> wake_;
  std::mutex mutex_;
  Said said_;
  Stage stage_ = Stage::silent;
  bool is_scheduled_ = false;
  bool has_left_ = false;  // the client, before the response was complete
  std::function<void()> gone_;
};

std::shared_ptr<Exchange> make_exchange(std::shared_ptr<Channel> channel);

}  // namespace inferno::server
