#include "server/call.h"

#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "base/error.h"
#include "base/seconds.h"
#include "base/utf8.h"
#include "server/monitoring/load_report.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

constexpr std::string_view json_type = "application/json";
constexpr std::string_view stream_type = "text/event-stream; charset=utf-8";
constexpr std::size_t max_ignored = 64;
constexpr std::size_t max_name = 64;

// A field's name comes from the client: a header may have visible ASCII characters only.
std::string header_text(std::string_view name) {
  std::string text;
  for (const char letter : name.substr(0, max_name)) {
    const bool is_safe = letter > ' ' && letter < 0x7f && letter != ',' && letter != '"';
    text += is_safe ? letter : '?';
  }
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + header_text(name);
  return text;
}

int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const char lower = static_cast<char>(digit | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

std::string percent_decoded(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool has_digits = text[at] == '%' && at + 2 < text.size() && hex_value(text[at + 1]) >= 0 &&
                            hex_value(text[at + 2]) >= 0;
    if (!has_digits) {
      out += text[at];
      continue;
    }
    out += static_cast<char>(hex_value(text[at + 1]) * 16 + hex_value(text[at + 2]));
    at += 2;
  }
  return out;
}

bool is_json(std::string_view content_type) {
  return lower_case(trimmed(content_type.substr(0, content_type.find(';')))) == json_type;
}

}  // namespace

std::string random_id(std::string_view prefix) {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed = {device(), device(), device(), device(), device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return fmt::format("{}{:016x}{:016x}", prefix, random(), random());
}

std::string dumped(const Json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

void add_retry_after(Headers& headers, const ApiError& error) {
  if (error.retry_after > 0) headers.emplace_back("Retry-After", fmt::format("{}", error.retry_after));
}

Call::Call(Shared& shared, CallOrigin origin, HttpRequest request, std::shared_ptr<Exchange> exchange)
    : shared_(shared),
      origin_(std::move(origin)),
      request_(std::move(request)),
      exchange_(std::move(exchange)) {}

Call::~Call() {
  if (status_ == 0) status_ = was_cancelled_ ? 499 : 500;
  shared_.metrics().request(origin_.route, status_);
  for (const std::string& field : ignored_) shared_.metrics().ignored_field(field);
  shared_.log().request({.id = id_,
                         .method = request_.method,
                         .route = origin_.route,
                         .peer = request_.peer,
                         .key = origin_.key,
                         .status = status_,
                         .prompt_tokens = usage_.prompt_tokens,
                         .cached_tokens = usage_.cached_tokens,
                         .generated_tokens = usage_.generated_tokens,
                         .queue_seconds = usage_.queue_seconds,
                         .first_token_seconds = usage_.first_token_seconds,
                         .total_seconds = seconds_since(start_),
                         .was_cancelled = was_cancelled_});
}

std::string Call::client() const {
  return origin_.key > 0 ? fmt::format("key {}", origin_.key) : request_.peer;
}

std::string Call::path_argument() const {
  const std::size_t at = origin_.route.find("{id}");
  return at == std::string::npos ? "" : percent_decoded(std::string_view(request_.path).substr(at));
}

Json Call::take_body() {
  const auto share = std::move(request_.body_share);
  const std::string text = std::exchange(request_.body, {});
  if (!is_json(request_.header("content-type"))) {
    throw ApiError(
        415, "invalid_request_error",
        "Content-Type: expected application/json (send the header Content-Type: application/json)");
  }
  if (text.empty()) throw invalid("the request body is empty: expected a JSON object");
  try {
    Json body = parse_request_json(text, "request body");
    if (!body.is_object()) throw invalid("request body: expected a JSON object");
    return body;
  } catch (const Error& problem) {
    throw invalid(problem.what());
  }
}

void Call::ignore(std::string field) {
  if (ignored_.size() < max_ignored && std::ranges::find(ignored_, field) == ignored_.end()) {
    ignored_.push_back(std::move(field));
  }
}

Headers Call::headers(std::string_view content_type) const {
  Headers headers = origin_.headers;
  headers.emplace_back("Content-Type", content_type);
  headers.emplace_back("x-request-id", id_);
  if (origin_.dialect == Dialect::anthropic) headers.emplace_back("request-id", id_);
  if (!shared_.settings().worker.empty()) headers.emplace_back("x-inferno-worker", shared_.settings().worker);
  if (!ignored_.empty()) headers.emplace_back("x-inferno-ignored", joined(ignored_));
  if (const std::string_view format = request_.header(load_format_header); !format.empty()) {
    const auto model = shared_.model_if_loaded();
    auto report = load_report(format, model ? model->engine().stats() : EngineStats{});
    if (report) headers.emplace_back(load_header, std::move(*report));
  }
  return headers;
}

void Call::respond(int status, const Json& body) {
  respond({.status = status, .headers = {}, .body = dumped(body)});
}

void Call::respond(HttpResponse response) {
  if (is_over_) return;
  is_over_ = true;
  status_ = response.status;
  const auto type = std::ranges::find(response.headers, "Content-Type", &Headers::value_type::first);
  Headers all = headers(type == response.headers.end() ? json_type : std::string_view(type->second));
  for (auto& header : response.headers) {
    if (header.first != "Content-Type") all.push_back(std::move(header));
  }
  response.headers = std::move(all);
  exchange_->respond(std::move(response));
}

void Call::fail(const ApiError& error) {
  if (is_over_) return;
  Json body = body_of(error, origin_.dialect);
  if (origin_.dialect == Dialect::anthropic) body["request_id"] = id_;
  HttpResponse response = {.status = error.status, .headers = headers(json_type), .body = dumped(body)};
  add_retry_after(response.headers, error);
  is_over_ = true;
  status_ = error.status;
  if (!is_streaming_) return exchange_->respond(std::move(response));
  exchange_->abandon(std::move(response), failure_piece(error, body));
}

std::string Call::failure_piece(const ApiError& error, const Json& body) const {
  if (failure_events_) {
    std::string piece;
    for (const auto& [name, data] : failure_events_(error)) {
      piece += fmt::format("event: {}\ndata: {}\n\n", name, dumped(data));
    }
    return piece;
  }
  const std::string_view name = origin_.dialect == Dialect::anthropic ? "event: error\n" : "";
  return fmt::format("{}data: {}\n\n", name, dumped(body));
}

void Call::begin_stream() {
  if (is_streaming_ || is_over_) return;
  is_streaming_ = true;
  status_ = 200;
  HttpResponse head = {.status = 200, .headers = headers(stream_type), .body = {}};
  head.headers.emplace_back("Cache-Control", "no-cache");
  head.headers.emplace_back("X-Accel-Buffering", "no");
  const bool is_anthropic = origin_.dialect == Dialect::anthropic;
  exchange_->begin(std::move(head),
                   is_anthropic ? "event: ping\ndata: {\"type\": \"ping\"}\n\n" : ": ping\n\n");
}

void Call::event(const Json& data) {
  if (!is_over_) exchange_->write(fmt::format("data: {}\n\n", dumped(data)));
}

void Call::event(std::string_view name, const Json& data) {
  if (!is_over_) exchange_->write(fmt::format("event: {}\ndata: {}\n\n", name, dumped(data)));
}

void Call::raw_event(std::string_view data) {
  if (!is_over_) exchange_->write(fmt::format("data: {}\n\n", data));
}

void Call::end_stream() {
  if (is_over_) return;
  is_over_ = true;
  exchange_->finish();
}

void Call::on_disconnect(std::function<void()> gone) {
  exchange_->on_disconnect(std::move(gone));
}

}  // namespace inferno::server
