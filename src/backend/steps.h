// What a backend tells about the steps of an engine: how large they should be, how long the device works on
// them, how long it waits for the next one, and how many it replays.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/seconds.h"

namespace inferno {

// How large steps should be to use a device well. Weights are read once a step, however many rows it has.
struct StepRows {
  int all = 512;
  int prompts_beside_answers = 256;
  // A step beside answers should take no longer, because they wait for it: it gets fewer rows of prompts. 0:
  // no limit.
  double seconds = 0.0;
};

struct StepTimes {
  double busy = 0.0, idle = 0.0;  // seconds, of steps that are done
  double idle_share() const { return busy + idle > 0.0 ? idle / (busy + idle) : 0.0; }
};

class StepTimer {
 public:
  virtual ~StepTimer() = default;
  // Around queueing a step, in the order of the steps.
  virtual void begin() = 0;
  virtual void end() = 0;
  // There is nothing to do: the time until the next begin() does not count.
  virtual void rest() = 0;
  virtual StepTimes times() = 0;
};

// For devices whose operations return when they are done.
class HostStepTimer final : public StepTimer {
 public:
  void begin() override {
    begun_ = Clock::now();
    if (ended_) times_.idle += seconds_between(*ended_, begun_);
  }
  void end() override {
    ended_ = Clock::now();
    times_.busy += seconds_between(begun_, *ended_);
  }
  void rest() override { ended_.reset(); }
  StepTimes times() override { return times_; }

 private:
  using Clock = std::chrono::steady_clock;
  Clock::time_point begun_ = {};
  std::optional<Clock::time_point> ended_;
  StepTimes times_;
};

// How often steps were replayed from recorded graphs, and how often one was recorded.
struct ReplayCounts {
  std::uint64_t replayed = 0, recorded = 0;
};

}  // namespace inferno
