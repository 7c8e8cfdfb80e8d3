// The driver of a load test: starts requests when they are due and keeps a record of each. A target answers
// them: a server (load_client.h) or an engine in this process (engine_target.h).
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/seconds.h"
#include "cli/bench/load/load_plan.h"
#include "cli/bench/load/load_statistics.h"

namespace inferno::load {

// The requests of a run, by their numbers in the plan. Times are seconds since the run began.
class Records {
 public:
  double now() const { return seconds_since(begin_); }

  void start(std::size_t number, int input_tokens);
  // Of a request that has not ended. A target corrects the numbers of tokens.
  RequestRecord& of(std::size_t number) { return open_.at(number).record; }
  // Some text of the answer arrived.
  void add_text(std::size_t number, double time);
  void end(std::size_t number, Outcome outcome, std::string problem = {});

  std::size_t open() const { return open_.size(); }
  std::vector<RequestRecord> take_ended() { return std::move(ended_); }

 private:
  struct Open {
    RequestRecord record;
    bool has_text = false;
    double last_text = 0.0;
  };
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::unordered_map<std::size_t, Open> open_;
  std::vector<RequestRecord> ended_;
};

// Requests that run when a target is destroyed are dropped.
class Target {
 public:
  virtual ~Target() = default;
  // Starts a request of the plan, which may end at once.
  virtual void start(std::size_t number, Records& records) = 0;
  // Returns after `seconds`, or when something happened to a request.
  virtual void wait(double seconds, Records& records) = 0;
};

struct LoadRun {
  std::span<const PlannedRequest> plan;
  int max_streams = 0;  // at once; 0: no limit
};

struct LoadResult {
  std::vector<RequestRecord> records;  // of the requests that ended
  bool was_interrupted = false;        // by Ctrl-C; the requests that ran were dropped
};

LoadResult run_load(Target& target, const LoadRun& run);

}  // namespace inferno::load
