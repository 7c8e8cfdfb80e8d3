#include "server/server.h"

#include <fmt/format.h>

#include <atomic>
#include <thread>

#include "base/error.h"
#include "server/admission/waiting_room.h"
#include "server/routes.h"

namespace inferno::server {
namespace {

ApiError refused_access(Refusal reason) {
  switch (reason) {
    case Refusal::bad_host:
      return {403, "permission_error",
              "Host: this server answers to loopback names only (start it with --allowed-host NAME to allow "
              "another)"};
    case Refusal::bad_origin:
      return {
          403, "permission_error",
          "Origin: web pages of other origins may not use this server (start it with --cors-origin ORIGIN to "
          "allow one)"};
    case Refusal::no_key:
    case Refusal::wrong_key: break;
  }
  ApiError error(401, "authentication_error",
                 reason == Refusal::no_key
                     ? "no API key: send it as Authorization: Bearer KEY, or as x-api-key: KEY"
                     : "the API key is not one of this server's keys");
  error.code = "invalid_api_key";
  return error;
}

}  // namespace

struct Server::Impl {
  explicit Impl(ServerOptions wanted)
      : options(std::move(wanted)),
        access(options.access),
        shared(options.settings, options.log),
        http(options.http,
             {.admit = [this](const HttpRequest& head) { return admit(head); },
              .handle =
                  [this](HttpRequest request, std::shared_ptr<Exchange> exchange) {
                    handle(std::move(request), std::move(exchange));
                  },
              .refuse = [this](const HttpRequest* head, int status,
                               const std::string& message) { return refuse(head, status, message); }}) {
    shared.set_connection_counter([this] { return http.counts().connections; });
    if (!options.waits_for_model) waiting.let_in();
  }

  bool needs_key(const RouteMatch& match) const {
    if (match.route == nullptr) return true;  // who has no key learns nothing about routes
    return match.route->needs_key && !(options.public_metrics && match.route->path == "/metrics");
  }

  std::optional<HttpResponse> admit(const HttpRequest& head) {
    const RouteMatch match = find_route(head.method, head.path);
    const auto refuse = [&](const ApiError& error, Headers headers = {}) {
      return refusal(head, match, error, std::move(headers));
    };
    if (const auto reason = access.refuses(head)) {
      shared.metrics().refused("host");
      return refuse(refused_access(*reason));
    }
    if (head.method == "OPTIONS" && !match.allowed_methods.empty()) {
      if (auto response = access.preflight(head, match.allowed_methods)) {
        add_headers(response->headers, note(head, match, response->status), match.dialect);
        return response;
      }
    }
    if (needs_key(match) && !access.key_of(head)) {
      shared.metrics().refused("unauthorized");
      const bool has_key = !head.header("authorization").empty() || !head.header("x-api-key").empty();
      return refuse(refused_access(has_key ? Refusal::wrong_key : Refusal::no_key),
                    {{"WWW-Authenticate", "Bearer"}});
    }
    if (match.allowed_methods.empty() || is_hidden(match)) {
      return refuse({404, "invalid_request_error", fmt::format("no such route ({})", advice_for(head.path))});
    }
    if (match.route == nullptr) {
      return refuse({405, "invalid_request_error",
                     fmt::format("method not allowed: this route answers {}", match.allowed_methods)},
                    {{"Allow", match.allowed_methods}});
    }
    return std::nullopt;
  }

  // What the HTTP server refuses for its form, its size or its time.
  HttpResponse refuse(const HttpRequest* head, int status, const std::string& message) {
    const ApiError error =
        status == 503 ? unavailable(message)
                      : ApiError(status, status < 500 ? "invalid_request_error" : "server_error", message);
    if (head != nullptr) {
      if (status == 503) shared.metrics().refused("body_memory");
      return refusal(*head, find_route(head->method, head->path), error, {});
    }
    Headers headers = {{"Content-Type", "application/json"}};
    add_retry_after(headers, error);
    return {.status = status, .headers = std::move(headers), .body = dumped(body_of(error, Dialect::openai))};
  }

  HttpResponse refusal(const HttpRequest& head, const RouteMatch& match, const ApiError& error,
                       Headers headers) {
    const std::string id = note(head, match, error.status);
    for (auto& header : access.cors_headers(head)) headers.push_back(std::move(header));
    headers.emplace_back("Content-Type", "application/json");
    add_retry_after(headers, error);
    add_headers(headers, id, match.dialect);
    Json body = body_of(error, match.dialect);
    if (match.dialect == Dialect::anthropic) body["request_id"] = id;
    return {.status = error.status, .headers = std::move(headers), .body = dumped(body)};
  }

  void add_headers(Headers& headers, const std::string& id, Dialect dialect) const {
    headers.emplace_back("x-request-id", id);
    if (dialect == Dialect::anthropic) headers.emplace_back("request-id", id);
    const std::string& worker = options.settings.worker;
    if (!worker.empty()) headers.emplace_back("x-inferno-worker", worker);
  }

  // Logs and counts a request that no Call does it for, because it reaches no route. Returns its id.
  std::string note(const HttpRequest& head, const RouteMatch& match, int status) {
    std::string id = random_id("req_");
    const std::string route(match.route != nullptr ? match.route->path : "other");
    shared.metrics().request(route, status);
    shared.log().request({.id = id,
                          .method = head.method.empty() ? "-" : head.method,
                          .route = route,
                          .peer = head.peer,
                          .key = access.key_of(head).value_or(0),
                          .status = status});
    return id;
  }

  bool is_hidden(const RouteMatch& match) const {
    if (match.route == nullptr) return false;
    return (match.route->path == "/metrics" && !options.settings.has_metrics) ||
           (match.route->path == "/" && !options.settings.has_page);
  }

  void handle(HttpRequest request, std::shared_ptr<Exchange> exchange) {
    const RouteMatch match = find_route(request.method, request.path);
    CallOrigin origin = {.route = std::string(match.route->path),
                         .dialect = match.dialect,
                         .key = access.key_of(request).value_or(0),
                         .headers = access.cors_headers(request)};
    const std::size_t bytes = request.body.size();
    auto call = std::make_shared<Call>(shared, std::move(origin), std::move(request), std::move(exchange));
    if (match.route->work == Work::quick) return run(*match.route, std::move(call));
    const auto has_left = std::make_shared<std::atomic<bool>>(false);
    call->on_disconnect([has_left] { has_left->store(true); });
    if (waiting.keep(bytes, [this, match, call, has_left] { give_to_workers(match, call, has_left); }))
      return;
    give_to_workers(match, std::move(call), has_left);
  }

  // A client that sends requests and leaves must not keep the workers from those that wait.
  void give_to_workers(const RouteMatch& match, SharedCall call,
                       std::shared_ptr<std::atomic<bool>> has_left) {
    if (match.route->work == Work::answering && refuse_if_full(*call)) return;
    shared.run([this, route = match.route, call = std::move(call), has_left = std::move(has_left)]() mutable {
      if (!has_left->load()) return run(*route, std::move(call));
      call->was_cancelled();
      shared.metrics().cancelled_by_disconnect();
    });
  }

  // Under overload most requests are refused: that must not cost the time in which others are answered.
  bool refuse_if_full(Call& call) {
    try {
      shared.model()->engine().check_room(call.client());
      return false;
    } catch (const ApiError& error) {
      call.fail(error);
    } catch (const Error& error) {
      shared.metrics().refused("queue_full");
      call.fail(api_error_of(error));
    }
    return true;
  }

  void run(const Route& route, SharedCall call) {
    try {
      route.run(call);
    } catch (const ApiError& error) {
      if (error.status == 429) shared.metrics().refused("queue_full");
      call->fail(error);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) shared.log().message(LogLevel::error, error.what());
      if (error.kind() == ErrorKind::overloaded) shared.metrics().refused("queue_full");
      call->fail(api_error_of(error));
    } catch (const std::exception& error) {
      shared.log().message(LogLevel::error, error.what());
      call->fail({500, "server_error", "internal error: the server's log has the details"});
    }
  }

  ServerOptions options;
  Access access;
  Shared shared;
  WaitingRoom waiting;
  HttpServer http;
};

Server::Server(ServerOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

Server::~Server() = default;

int Server::port() const {
  return impl_->http.port();
}

void Server::start() {
  impl_->http.start();
}

void Server::set_model(std::shared_ptr<const TextModel> model) {
  impl_->shared.model_loaded(std::move(model));
  impl_->waiting.let_in();
}

bool Server::drain(const std::function<bool()>& hurry) {
  using std::chrono::milliseconds;
  constexpr milliseconds slice(20), request_grace(100);
  const auto wait = [&](milliseconds time, const std::function<bool()>& is_done) {
    const auto end = std::chrono::steady_clock::now() + time;
    while (!is_done() && !hurry()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(std::min(slice, milliseconds(5)));
    }
    return is_done();
  };
  impl_->shared.announce_stop();
  wait(impl_->options.drain_delay, [] { return false; });
  // Clients of a socket that is kept open know nothing of the restart: what this process has accepted it
  // answers, one last time on each connection.
  const bool answers_all = impl_->options.waits_for_model && impl_->shared.model_if_loaded() != nullptr;
  if (!answers_all) impl_->shared.refuse_requests();
  impl_->http.stop_accepting();
  impl_->waiting.let_in();  // what waits for a model that will not come is refused
  const auto is_idle = [&] { return impl_->http.wait_until_idle(slice); };
  if (wait(impl_->options.drain_timeout, is_idle)) {
    // A connection that was accepted a moment ago may not have sent its request yet.
    if (answers_all) wait(request_grace, [] { return false; });
    if (!answers_all || wait(impl_->options.drain_timeout, is_idle)) return true;
  }
  if (hurry()) return false;
  impl_->shared.abort_generations("the server is shutting down before this answer was finished");
  impl_->http.wait_until_idle(milliseconds(1000));
  return false;
}

}  // namespace inferno::server
