// Routes without sockets, for tests: an exchange that records the response, and calls made from JSON.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "chat/json.h"
#include "server/call.h"
#include "server/shared.h"

namespace inferno::server {

class RecordedExchange : public Exchange {
 public:
  void respond(HttpResponse response) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(response);
    end();
  }
  void begin(HttpResponse head, std::string) override {
    const std::lock_guard lock(mutex_);
    response_ = std::move(head);
  }
  void write(std::string piece) override {
    const std::lock_guard lock(mutex_);
    response_.body += piece;
  }
  void finish() override {
    const std::lock_guard lock(mutex_);
    end();
  }
  void abandon(HttpResponse response, std::string last_piece) override {
    const std::lock_guard lock(mutex_);
    if (response_.body.empty()) {
      response_ = std::move(response);
    } else {
      response_.body += last_piece;
    }
    end();
  }
  void on_disconnect(std::function<void()> gone) override { gone_ = std::move(gone); }

  // The client closes the connection.
  void disconnect() {
    if (gone_) gone_();
  }
  // The complete response. Status 0 if it takes longer than a minute.
  HttpResponse wait() {
    std::unique_lock lock(mutex_);
    ended_.wait_for(lock, std::chrono::minutes(1), [&] { return is_over_; });
    return is_over_ ? response_ : HttpResponse{.status = 0, .headers = {}, .body = {}};
  }

 private:
  void end() {
    is_over_ = true;
    ended_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable ended_;
  HttpResponse response_;
  std::function<void()> gone_;
  bool is_over_ = false;
};

// What a client got.
struct Reply {
  int status = 0;
  Headers headers;
  std::string text;

  Json json() const { return Json::parse(text, nullptr, /*allow_exceptions=*/false); }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return {};
  }
  // The data of each event; the text "[DONE]" is a string.
  std::vector<Json> events() const {
    std::vector<Json> found;
    for (std::size_t at = 0; (at = text.find("data: ", at)) != std::string::npos;) {
      at += 6;
      const std::string data = text.substr(at, text.find("\n\n", at) - at);
      Json event = Json::parse(data, nullptr, /*allow_exceptions=*/false);
      found.push_back(event.is_discarded() ? Json(data) : std::move(event));
    }
    return found;
  }
};

class ServerScene {
 public:
  explicit ServerScene(std::shared_ptr<const TextModel> model, ServerSettings settings = {})
      : shared_(std::move(settings),
                {.format = LogFormat::text, .level = LogLevel::off, .write = [](auto) {}}) {
    if (model) shared_.model_loaded(std::move(model));
  }

  Shared& shared() { return shared_; }

  std::shared_ptr<Call> make_call(const std::string& body, std::shared_ptr<Exchange> exchange,
                                  CallOrigin origin = {}) {
    HttpRequest request;
    request.method = "POST";
    request.headers = {{"content-type", "application/json"}};
    request.body = body;
    return std::make_shared<Call>(shared_, std::move(origin), std::move(request), std::move(exchange));
  }

  // Runs a route as the router does, and waits for the response.
  Reply send(const std::function<void(std::shared_ptr<Call>)>& route, const std::string& body,
             CallOrigin origin = {}) {
    const auto exchange = std::make_shared<RecordedExchange>();
    auto call = make_call(body, exchange, std::move(origin));
    try {
      route(call);
    } catch (const ApiError& error) {
      call->fail(error);
    } catch (const Error& error) {
      call->fail(api_error_of(error));
    }
    call.reset();
    HttpResponse response = exchange->wait();
    return {response.status, std::move(response.headers), std::move(response.body)};
  }
  Reply send(const std::function<void(std::shared_ptr<Call>)>& route, const Json& body,
             CallOrigin origin = {}) {
    return send(route, dumped(body), std::move(origin));
  }

 private:
  Shared shared_;
};

}  // namespace inferno::server
