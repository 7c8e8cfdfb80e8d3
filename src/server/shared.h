// What all calls share: settings, the model once it is loaded, the state of the server, metrics and log.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "chat/json.h"
#include "server/monitoring/access_log.h"
#include "server/monitoring/metrics.h"
#include "service/sampling_settings.h"
#include "service/text_model.h"

namespace inferno::server {

// Where reasoning appears in chat completions: in both fields, in one of them, or in the content (none).
enum class ReasoningFormat { both, reasoning, reasoning_content, none };

struct ServerSettings {
  std::vector<std::string> names = {
      "builtin"};                // the first is the served name; "*" among them: any name is answered
  SamplingSettings defaults;     // below those of a request, above the model's own
  Json template_variables;       // null or an object: below chat_template_kwargs of a request
  std::string reasoning_effort;  // the default; empty: the model's
  ReasoningFormat reasoning_format = ReasoningFormat::both;
  std::string worker;   // x-inferno-worker
  std::string version;  // of the program
  bool timings = true;  // the objects "timings" and "inferno" in responses
  bool has_metrics = true, has_page = true;
  // From the arrival of a request to its last token.
  std::chrono::milliseconds max_request_time = std::chrono::seconds(600);
};

enum class State { loading, ready, stopping };

// A generation that runs and can be ended from outside.
class Running {
 public:
  virtual ~Running() = default;
  // Any thread; they do not block.
  virtual void abort(const std::string& message) = 0;
  virtual void check_time(std::chrono::steady_clock::time_point now) = 0;  // ends it if it takes too long
};

class Shared {
 public:
  Shared(ServerSettings settings, LogOptions log);
  ~Shared();

  const ServerSettings& settings() const { return settings_; }
  Metrics& metrics() { return metrics_; }
  AccessLog& log() { return log_; }

  State state() const { return state_.load(); }
  void model_loaded(std::shared_ptr<const TextModel> model);
  // health and readiness are 503 from now on; requests are still answered.
  void announce_stop();
  // From now on model() refuses.
  void refuse_requests() { refuses_.store(true); }
  // Ends every running generation with an error.
  void abort_generations(const std::string& message);

  // ApiError 503 while loading, after refuse_requests() and after the engine has failed.
  std::shared_ptr<const TextModel> model() const;
  std::shared_ptr<const TextModel> model_if_loaded() const;  // nullptr while loading
  // Why the server should not get requests, in words; empty if it is loaded, not stopping, the engine is
  // healthy and its heartbeat recent.
  std::string problem() const;
  // The same of the engine alone: empty while loading and while stopping, if it works.
  std::string engine_problem() const;
  std::int64_t started() const { return started_; }  // Unix time, for "created" of models

  // Open connections, for the metrics. Set before the server starts.
  void set_connection_counter(std::function<int()> count) { count_connections_ = std::move(count); }
  int open_connections() const { return count_connections_ ? count_connections_() : 0; }

  // ApiError 404 model_not_found, listing the names, unless `name` is one of them; nullptr is the first.
  // Returns the name that the response has.
  std::string served_name(const Json* name) const;

  // Runs a task on a worker thread: requests that may take long, and events of answers, which never wait for
  // those.
  void run(std::function<void()> task);
  void run_soon(std::function<void()> task);

  void add(const std::shared_ptr<Running>& generation);
  void remove(const Running* generation);

 private:
  class Workers;
  void watch_time(const std::stop_token& stop);
  std::vector<std::shared_ptr<Running>> running() const;
  ServerSettings settings_;
  Metrics metrics_;
  AccessLog log_;
  std::atomic<State> state_ = State::loading;
  std::atomic<bool> refuses_ = false;
  mutable std::mutex mutex_;  // guards the two below
  std::shared_ptr<const TextModel> model_;
  std::map<const Running*, std::weak_ptr<Running>> generations_;
  std::function<int()> count_connections_;
  std::int64_t started_ = 0;
  std::unique_ptr<Workers> requests_, events_;
  std::condition_variable_any stops_;
  std::jthread clock_;  // last: it looks at the generations
};

}  // namespace inferno::server
