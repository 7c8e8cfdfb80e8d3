#include "cli/bench/engine_load.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "cli/bench/load/engine_target.h"
#include "engine/engine.h"

namespace inferno {
namespace {

using namespace load;

GenerationRequest request_of(const PlannedRequest& planned, std::vector<TokenId> prompt, float temperature) {
  GenerationRequest request;
  request.prompt = std::move(prompt);
  request.max_tokens = planned.output_tokens;
  request.sampling.temperature = temperature;
  return request;
}

// A first request sizes what is sized late. Its prompt is none of the test's.
void warm_up(Engine& engine, int context) {
  const std::vector<TokenId> prompt(static_cast<std::size_t>(std::clamp(context - 4, 1, 64)));
  const auto stream = engine.submit(request_of({.output_tokens = 4, .blocks = {}}, prompt, 0.0f));
  while (stream->next(std::chrono::hours(1))) continue;
}

// The engine publishes its statistics shortly after the last event of a step.
EngineStats stats_when_idle(const Engine& engine) {
  EngineStats stats = engine.stats();
  while (engine.healthy() && stats.running + stats.waiting > 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    stats = engine.stats();
  }
  return stats;
}

}  // namespace

int parallel_for(const LoadOptions& options, int parallel) {
  constexpr int usual = 256;
  if (parallel > 0) return parallel;
  const bool is_loop = options.rates.empty() && options.trace.empty();
  return is_loop || options.limits_streams ? std::ranges::max(options.concurrency) : usual;
}

int context_for(const std::vector<Level>& levels) {
  int context = 2;
  for (const Level& level : levels) {
    for (const PlannedRequest& one : level.plan) {
      context = std::max(context, std::max(1, one.input_tokens) + one.output_tokens);
    }
  }
  return context;
}

void run_engine_load(std::unique_ptr<Backend> backend, std::unique_ptr<Decoder> decoder,
                     const EngineLoad& load) {
  const int vocab = decoder->spec().vocab, context = decoder->limits().context;
  EngineOptions options = {.max_sequences = load.parallel, .max_waiting = 1 << 30, .times_steps = true};
  options.suit(backend->step_rows());
  options.max_step_tokens = decoder->limits().max_tokens;
  Engine engine(std::move(backend), std::move(decoder), options);
  warm_up(engine, context);
  const PromptWriter prompts(load.seed, load.options.shared_prefix);
  const auto target = [&](const Level& level, std::uint64_t first_number) {
    const auto request = [&prompts, &level, &load, first_number, vocab](std::size_t i) {
      const PlannedRequest& planned = level.plan[i];
      return request_of(planned, prompts.tokens(first_number + i, planned, vocab), load.options.temperature);
    };
    return make_engine_target(engine, request);
  };
  EngineStats before;
  run_levels(
      load.options, load.levels, load.seed,
      {.title = load.title,
       .json = load.json,
       .target = target,
       .before = [&] { before = stats_when_idle(engine); },
       .after =
           [&](LoadSummary& summary) { summary.engine = figures_between(before, stats_when_idle(engine)); }});
}

}  // namespace inferno
