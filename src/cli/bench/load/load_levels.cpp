#include "cli/bench/load/load_levels.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "cli/commit.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"
#include "cli/version.h"

namespace inferno::load {
namespace {

using Json = nlohmann::ordered_json;

Level trace_level(const LoadOptions& options, int limit) {
  constexpr int all = 1 << 30;
  Level level = {
      .name = std::filesystem::path(options.trace).filename().string(),
      .max_streams = limit,
      .plan = read_trace(options.trace, options.requests > 0 ? options.requests : all, options.speedup)};
  const double span = level.plan.back().at;
  level.value = span > 0.0 ? static_cast<double>(level.plan.size()) / span : 1.0;
  return level;
}

Level rate_level(const LoadOptions& options, double rate, int limit, std::uint64_t seed) {
  const bool at_once = std::isinf(rate);
  // Half a minute of arrivals tells more than a fixed number.
  const int chosen = at_once ? 256 : std::max(20, static_cast<int>(30.0 * rate));
  const int count = options.requests > 0 ? options.requests : chosen;
  Level level = {
      .name = at_once ? fmt::format("{} requests at once", count) : fmt::format("{:g} requests/s", rate),
      .value = at_once ? static_cast<double>(count) : rate,
      .max_streams = limit,
      .plan = closed_loop(count, options.input_tokens, options.output_tokens)};
  if (!at_once) spread_arrivals(level.plan, rate, seed);
  return level;
}

Json header_json(const LoadOptions& options, std::uint64_t seed) {
  return {{"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
          {"version", version},
          {"commit", commit},
          {"seed", seed},
          {"input_len", options.input_tokens},
          {"output_len", options.output_tokens},
          {"shared_prefix", options.shared_prefix},
          {"temperature", options.temperature}};
}

void write_plot(const LoadOptions& options, const Subject& subject, std::span<const LoadSummary> summaries) {
  const std::string title = fmt::format("{} · {} tokens in, {} out · inferno {} {}", subject.title,
                                        options.input_tokens, options.output_tokens, version, commit);
  const bool is_loop = options.rates.empty() && options.trace.empty();
  write_file(options.plot, as_svg(title, is_loop ? "concurrent requests" : "requests/s", summaries));
}

}  // namespace

std::uint64_t seed_of(const LoadOptions& options) {
  return options.seed.value_or(
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
}

std::vector<Level> levels(const LoadOptions& options, std::uint64_t seed) {
  const int limit = options.limits_streams ? options.concurrency.front() : 0;
  if (!options.trace.empty()) return {trace_level(options, limit)};
  std::vector<Level> out;
  for (const double rate : options.rates) out.push_back(rate_level(options, rate, limit, seed + out.size()));
  if (!out.empty()) return out;
  for (const int streams : options.concurrency) {
    const int count = options.requests > 0 ? options.requests : std::max(8, 4 * streams);
    out.push_back({.name = fmt::format("concurrency {}", streams),
                   .value = static_cast<double>(streams),
                   .max_streams = streams,
                   .plan = closed_loop(count, options.input_tokens, options.output_tokens)});
  }
  return out;
}

void leave_out_long(std::vector<Level>& levels, int context) {
  for (Level& level : levels) {
    const std::size_t all = level.plan.size();
    std::erase_if(level.plan,
                  [&](const PlannedRequest& one) { return one.input_tokens + one.output_tokens > context; });
    if (level.plan.size() == all) continue;
    say(fmt::format("{} of {} requests of the trace exceed the context of {} tokens and are left out\n",
                    all - level.plan.size(), all, context));
    if (level.plan.empty()) {
      fail(ErrorKind::invalid_request,
           fmt::format("--trace: no request fits the context of {} tokens", context));
    }
  }
}

void run_levels(const LoadOptions& options, const std::vector<Level>& levels, std::uint64_t seed,
                const Subject& subject) {
  const SignalWatcher watcher;
  std::uint64_t number = 0;
  std::vector<LoadSummary> summaries;
  bool was_interrupted = false;
  for (const Level& level : levels) {
    subject.before();
    auto target = subject.target(level, number);
    LoadResult result = run_load(*target, {.plan = level.plan, .max_streams = level.max_streams});
    target.reset();  // drops what Ctrl-C left running: after() may wait until nothing runs
    number += level.plan.size();
    LoadSummary& summary = summaries.emplace_back(summarize(result.records));
    summary.load = level.name;
    summary.level = level.value;
    subject.after(summary);
    if (!options.json) fmt::print("{}\n", as_text(summary));
    std::fflush(stdout);
    was_interrupted = result.was_interrupted;
    if (was_interrupted) break;
  }
  if (options.json) {
    Json out = subject.json;
    out.update(header_json(options, seed));
    for (const LoadSummary& summary : summaries) out["results"].push_back(as_json(summary));
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (summaries.size() > 1) {
    fmt::print("{}", as_table(summaries));
  }
  if (!options.plot.empty()) write_plot(options, subject, summaries);
  if (was_interrupted) throw Exit{130};
  if (std::ranges::all_of(summaries, [](const LoadSummary& one) { return one.finished == 0; })) throw Exit{1};
}

}  // namespace inferno::load
