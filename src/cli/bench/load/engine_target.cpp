#include "cli/bench/load/engine_target.h"

#include <chrono>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/mailbox.h"

namespace inferno::load {
namespace {

class EngineTarget final : public Target {
 public:
  EngineTarget(Engine& engine, std::function<GenerationRequest(std::size_t)> request)
      : engine_(engine), request_(std::move(request)) {}
  ~EngineTarget() override {
    for (auto& [number, stream] : streams_) stream->cancel();
  }
  EngineTarget(const EngineTarget&) = delete;
  EngineTarget& operator=(const EngineTarget&) = delete;

  void start(std::size_t number, Records& records) override {
    try {
      // Events may arrive before submit() returns; they are read in wait().
      streams_[number] =
          engine_.submit(request_(number), [events = events_, number] { events->post(number); });
    } catch (const Error& error) {
      streams_.erase(number);
      if (error.kind() != ErrorKind::overloaded) throw;
      records.end(number, Outcome::refused, error.what());
    }
  }

  void wait(double seconds, Records& records) override {
    events_->wait_for(std::chrono::microseconds(static_cast<std::int64_t>(seconds * 1e6)));
    const std::vector<std::size_t> numbers = events_->drain();
    const double time = records.now();
    for (const std::size_t number : numbers) {
      while (read_event(number, time, records)) {}
    }
  }

 private:
  // Whether there was one. All that are there are read at once.
  bool read_event(std::size_t number, double time, Records& records) {
    const auto stream = streams_.find(number);
    if (stream == streams_.end()) return false;
    const auto event = stream->second->next(std::chrono::milliseconds(0));
    if (!event) return false;
    if (std::holds_alternative<Sampled>(*event)) {
      ++records.of(number).output_tokens;
      records.add_text(number, time);
      return true;
    }
    if (const auto* failed = std::get_if<Failed>(&*event)) {
      records.end(number, Outcome::failed, failed->message);
    } else {
      records.of(number).input_tokens = std::get<Finished>(*event).prompt_tokens;
      records.end(number, Outcome::finished);
    }
    streams_.erase(stream);
    return true;
  }

  Engine& engine_;
  std::function<GenerationRequest(std::size_t)> request_;
  // The number of its request for each event; shared with streams that may outlive this target.
  std::shared_ptr<Mailbox<std::size_t>> events_ = std::make_shared<Mailbox<std::size_t>>();
  std::unordered_map<std::size_t, std::shared_ptr<TokenStream>> streams_;
};

}  // namespace

std::unique_ptr<Target> make_engine_target(Engine& engine,
                                           std::function<GenerationRequest(std::size_t)> request) {
  return std::make_unique<EngineTarget>(engine, std::move(request));
}

EngineFigures figures_between(const EngineStats& before, const EngineStats& after) {
  const std::uint64_t steps = after.steps - before.steps;
  const auto per_step = [steps](double value) {
    return steps == 0 ? 0.0 : value / static_cast<double>(steps);
  };
  const StepTimes device = {.busy = after.device.busy - before.device.busy,
                            .idle = after.device.idle - before.device.idle};
  EngineFigures out = {.decode_steps = after.decode_steps - before.decode_steps,
                       .mixed_steps = after.mixed_steps - before.mixed_steps,
                       .ahead_steps = after.ahead_steps - before.ahead_steps,
                       .rows_per_step = per_step(static_cast<double>(after.step_rows - before.step_rows)),
                       .device_idle_share = device.idle_share(),
                       .host_microseconds = 1e6 * per_step(after.host_seconds - before.host_seconds),
                       .replayed = after.replays.replayed - before.replays.replayed,
                       .recorded = after.replays.recorded - before.replays.recorded,
                       .preemptions = after.preemptions - before.preemptions};
  out.prompt_steps = steps - out.decode_steps - out.mixed_steps;
  return out;
}

}  // namespace inferno::load
