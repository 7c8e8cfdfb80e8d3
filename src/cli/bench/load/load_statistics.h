// What a load test measured, in the terms and the layout of vLLM's `bench serve`, so that figures can be
// compared line by line.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace inferno::load {

enum class Outcome { finished, refused, failed };  // refused: 429

// One request. Times are seconds since the run began.
struct RequestRecord {
  Outcome outcome = Outcome::failed;
  int input_tokens = 0, output_tokens = 0;
  double start = 0.0, first_token = 0.0, end = 0.0;
  std::vector<float> gaps;  // seconds between stream events that had text
  std::string problem;      // of a refused or failed one
};

struct Spread {
  double mean = 0.0, median = 0.0, deviation = 0.0, p95 = 0.0, p99 = 0.0, p999 = 0.0, max = 0.0;
};

// What an engine in this process did during a run.
struct EngineFigures {
  // Steps that only decode, that compute prompts beside decodes, and that compute prompts alone.
  std::uint64_t decode_steps = 0, mixed_steps = 0, prompt_steps = 0;
  std::uint64_t ahead_steps = 0;  // of all, those queued before the step before was read
  double rows_per_step = 0.0;
  double device_idle_share = 0.0;  // of the time from the first to the last step, while there was work
  double host_microseconds = 0.0;  // of the engine's thread, per step
  std::uint64_t replayed = 0, recorded = 0;  // graphs
  std::uint64_t preemptions = 0;
};

// Percentiles interpolate linearly, as numpy's do. All 0 without values.
Spread spread_of(std::vector<double> values);

struct LoadSummary {
  std::string load;    // "concurrency 8", "4 requests/s", the name of a trace
  double level = 0.0;  // the number in it
  std::int64_t finished = 0, refused = 0, failed = 0;
  std::int64_t input_tokens = 0, output_tokens = 0;  // of finished requests
  double seconds = 0.0;
  std::int64_t peak_streams = 0;
  Spread first_token, per_token, gap, whole, refusal;  // milliseconds
  std::string first_problem;                           // of a failed request
  std::optional<EngineFigures> engine;
  double requests_per_second() const { return seconds > 0.0 ? static_cast<double>(finished) / seconds : 0.0; }
  double output_per_second() const {
    return seconds > 0.0 ? static_cast<double>(output_tokens) / seconds : 0.0;
  }
  double tokens_per_second() const {
    return seconds > 0.0 ? static_cast<double>(input_tokens + output_tokens) / seconds : 0.0;
  }
};

// The run lasts from 0 to the end of the last request.
LoadSummary summarize(std::span<const RequestRecord> records);

// The block that vLLM prints, with refusals and failures, and the figures of an engine.
std::string as_text(const LoadSummary& summary);
// A markdown table, one line for each load.
std::string as_table(std::span<const LoadSummary> summaries);
// vLLM's names.
nlohmann::ordered_json as_json(const LoadSummary& summary);
// Throughput and latencies by load.
std::string as_svg(const std::string& title, const std::string& x_label,
                   std::span<const LoadSummary> summaries);

}  // namespace inferno::load
