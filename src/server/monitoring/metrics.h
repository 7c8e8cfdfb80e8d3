// Counters and histograms in Prometheus' text format: vLLM's names, which dashboards and gateways know, and
// inferno_* for what is ours.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "engine/engine_options.h"
#include "service/answer.h"

namespace inferno::server {

// What the text needs beside the counts themselves.
struct MetricsState {
  std::string model_name, version;
  EngineStats engine;
  double heartbeat_age = 0;  // seconds
  int context = 0;           // tokens; 0 while loading
  int connections = 0;       // open ones
  bool is_ready = false;
  std::int64_t started = 0;  // Unix time
};

// Thread-safe; counting never blocks for long.
class Metrics {
 public:
  Metrics();
  ~Metrics();

  // `route` is the pattern of a route, never what the client sent.
  void request(std::string_view route, int status);

  // Called for each token of an answer as it is generated: the counter of generated tokens grows with them.
  void first_token(double seconds);                   // since the request arrived
  void token_gap(double seconds);                     // since the previous token of the answer
  void answer(const Answer& answer, double seconds);  // since the request arrived; cancelled ones too
  void failed_answer();                               // ended by an error of the engine

  void cancelled_by_disconnect();
  void parse_fault();                         // a reply that violated its protocol; its text was kept
  void ignored_field(std::string_view name);  // only known names are labels; others are counted as "other"
  void refused(std::string_view reason);      // "queue_full", "unauthorized", …; never what the client sent

  std::string text(const MetricsState& state) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace inferno::server
