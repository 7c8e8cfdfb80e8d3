// One API request on its way through the server: who sent it, its fields, and the response with the headers,
// the log line and the counts that every response has.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/token.h"
#include "chat/json.h"
#include "server/api_error.h"
#include "server/http/http.h"

namespace inferno::server {

class Shared;  // shared.h: what all calls use

// `prefix` and 32 random hexadecimal digits.
std::string random_id(std::string_view prefix);

// Never throws: text that is no UTF-8 is replaced.
std::string dumped(const Json& json);

// Retry-After, for an error that has it.
void add_retry_after(Headers& headers, const ApiError& error);

// Token counts of a call, for the log and the metrics.
struct CallUsage {
  int prompt_tokens = 0, cached_tokens = 0, generated_tokens = 0;
  double queue_seconds = 0, first_token_seconds = 0;
};

// What the router knows of a request.
struct CallOrigin {
  std::string route;  // the route's pattern ("/v1/models/{id}"), never what the client sent
  Dialect dialect = Dialect::openai;
  int key = 0;      // number of the API key, from 1; 0 without keys
  Headers headers;  // for the response: CORS
};

// Used by one thread at a time.
class Call {
 public:
  Call(Shared& shared, CallOrigin origin, HttpRequest request, std::shared_ptr<Exchange> exchange);
  ~Call();  // writes the log line and counts the request
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Shared& shared() const { return shared_; }
  const HttpRequest& request() const { return request_; }
  const std::string& id() const { return id_; }                           // "req_…", chosen by us
  std::chrono::steady_clock::time_point start() const { return start_; }  // when its body had arrived
  int key() const { return origin_.key; }
  std::string client() const;  // whose turn in the queue it takes: the key's, or without keys the address's
  Dialect dialect() const { return origin_.dialect; }

  // What the path has in place of {id}, percent-decoded.
  std::string path_argument() const;
  // The body as a JSON object, once: its text is freed. ApiError 400, or 415 for another content type, if it
  // is none.
  Json take_body();

  // Fields that have no effect, for the header x-inferno-ignored; set before the response begins.
  void ignore(std::string field);
  const std::vector<std::string>& ignored() const { return ignored_; }
  // What the client should know of an answer that is good otherwise, for "warnings" in the response.
  void warn(std::string warning) { warnings_.push_back(std::move(warning)); }
  const std::vector<std::string>& warnings() const { return warnings_; }
  CallUsage& usage() { return usage_; }
  void was_cancelled() { was_cancelled_ = true; }  // the client disconnected

  // The first prompt, to tell where its prefix differs from those in the cache.
  void set_prompt(std::vector<TokenId> tokens) { prompt_ = std::move(tokens); }
  const std::vector<TokenId>& prompt() const { return prompt_; }

  void respond(int status, const Json& body);
  void respond(HttpResponse response);
  void fail(const ApiError& error);  // once events were sent: an error event, and the end
  // For an API whose streams do not end with a plain error: what to send instead, as names and data.
  using LastEvents = std::function<std::vector<std::pair<std::string, Json>>(const ApiError& error)>;
  void set_failure_events(LastEvents make) { failure_events_ = std::move(make); }

  // text/event-stream. The head leaves with the first event.
  void begin_stream();
  bool is_streaming() const { return is_streaming_; }
  void event(const Json& data);                         // "data: …"
  void event(std::string_view name, const Json& data);  // "event: …", "data: …"
  void raw_event(std::string_view data);                // "data: [DONE]"
  void end_stream();

  void on_disconnect(std::function<void()> gone);

 private:
  Headers headers(std::string_view content_type) const;
  std::string failure_piece(const ApiError& error, const Json& body) const;

  Shared& shared_;
  CallOrigin origin_;
  HttpRequest request_;
  std::shared_ptr<Exchange> exchange_;
  std::string id_ = random_id("req_");
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::vector<std::string> ignored_, warnings_;
  std::vector<TokenId> prompt_;
  CallUsage usage_;
  LastEvents failure_events_;
  int status_ = 0;
  bool is_streaming_ = false, is_over_ = false, was_cancelled_ = false;
};

}  // namespace inferno::server
