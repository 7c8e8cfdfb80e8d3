#include "cli/bench/load/load_run.h"

#include <algorithm>
#include <utility>

#include "base/signals.h"

namespace inferno::load {

void Records::start(std::size_t number, int input_tokens) {
  Open& open = open_[number];
  open.record.input_tokens = input_tokens;
  open.record.start = now();
}

void Records::add_text(std::size_t number, double time) {
  Open& open = open_.at(number);
  if (open.has_text) {
    open.record.gaps.push_back(static_cast<float>(time - open.last_text));
  } else {
    open.record.first_token = time;
  }
  open.has_text = true;
  open.last_text = time;
}

void Records::end(std::size_t number, Outcome outcome, std::string problem) {
  const auto at = open_.find(number);
  RequestRecord& record = at->second.record;
  record.end = now();
  record.outcome = outcome;
  record.problem = std::move(problem);
  ended_.push_back(std::move(record));
  open_.erase(at);
}

LoadResult run_load(Target& target, const LoadRun& run) {
  constexpr double patience = 0.2;  // seconds until the next look at Ctrl-C
  Records records;
  std::size_t next = 0;
  const auto has_room = [&] {
    return run.max_streams == 0 || records.open() < static_cast<std::size_t>(run.max_streams);
  };
  while (next < run.plan.size() || records.open() > 0) {
    if (SignalWatcher::received() != 0) return {.records = records.take_ended(), .was_interrupted = true};
    for (; next < run.plan.size() && has_room() && run.plan[next].at <= records.now(); ++next) {
      records.start(next, run.plan[next].input_tokens);
      target.start(next, records);
    }
    double seconds = patience;
    if (next < run.plan.size() && has_room()) seconds = std::min(seconds, run.plan[next].at - records.now());
    target.wait(std::max(0.0, seconds), records);
  }
  return {.records = records.take_ended(), .was_interrupted = false};
}

}  // namespace inferno::load
