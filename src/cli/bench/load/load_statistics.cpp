#include "cli/bench/load/load_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/bench/chart.h"

namespace inferno::load {
namespace {

double percentile(std::span<const double> sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(at);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (at - std::floor(at));
}

std::int64_t peak_of(std::span<const RequestRecord> records) {
  std::vector<std::pair<double, int>> changes;
  for (const RequestRecord& record : records) {
    changes.emplace_back(record.start, 1);
    changes.emplace_back(record.end, -1);
  }
  std::ranges::sort(changes);  // at the same time an end comes first
  std::int64_t now = 0, peak = 0;
  for (const auto& [time, change] : changes) peak = std::max(peak, now += change);
  return peak;
}

struct Named {
  const char* heading;
  const char* name;
  const char* key;
  Spread LoadSummary::* spread;
};

constexpr Named latencies[] = {
    {"Time to First Token", "TTFT", "ttft", &LoadSummary::first_token},
    {"Time per Output Token (excl. 1st token)", "TPOT", "tpot", &LoadSummary::per_token},
    {"Inter-token Latency", "ITL", "itl", &LoadSummary::gap},
    {"End-to-end Latency", "E2EL", "e2el", &LoadSummary::whole},
};

}  // namespace

Spread spread_of(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  double sum = 0.0, squares = 0.0;
  for (const double value : values) sum += value;
  const double mean = sum / static_cast<double>(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {.mean = mean,
          .median = percentile(values, 0.5),
          .deviation = std::sqrt(squares / static_cast<double>(values.size())),
          .p95 = percentile(values, 0.95),
          .p99 = percentile(values, 0.99),
          .p999 = percentile(values, 0.999),
          .max = values.back()};
}

LoadSummary summarize(std::span<const RequestRecord> records) {
  LoadSummary summary;
  std::vector<double> first, per_token, gaps, whole, refusals;
  for (const RequestRecord& record : records) {
    summary.seconds = std::max(summary.seconds, record.end);
    const double total = 1e3 * (record.end - record.start);
    switch (record.outcome) {
      case Outcome::refused:
        ++summary.refused;
        refusals.push_back(total);
        continue;
      case Outcome::failed:
        ++summary.failed;
        if (summary.first_problem.empty()) summary.first_problem = record.problem;
        continue;
      case Outcome::finished: ++summary.finished; break;
    }
    summary.input_tokens += record.input_tokens;
    summary.output_tokens += record.output_tokens;
    whole.push_back(total);
    if (record.output_tokens == 0) continue;
    first.push_back(1e3 * (record.first_token - record.start));
    double decode = 0.0;
    for (const float gap : record.gaps) {
      gaps.push_back(1e3 * static_cast<double>(gap));
      decode += gaps.back();
    }
    // To the last token: what the server sends after it is not decoding.
    if (record.output_tokens > 1) per_token.push_back(decode / (record.output_tokens - 1));
  }
  summary.peak_streams = peak_of(records);
  summary.first_token = spread_of(std::move(first));
  summary.per_token = spread_of(std::move(per_token));
  summary.gap = spread_of(std::move(gaps));
  summary.whole = spread_of(std::move(whole));
  summary.refusal = spread_of(std::move(refusals));
  return summary;
}

std::string as_text(const LoadSummary& summary) {
  std::string out = fmt::format("{:=^50}\n", " Serving Benchmark Result ");
  const auto count = [&](const char* name, std::int64_t value) {
    out += fmt::format("{:<40} {:<10}\n", name, value);
  };
  const auto number = [&](const std::string& name, double value) {
    out += fmt::format("{:<40} {:<10.2f}\n", name, value);
  };
  out += fmt::format("{:<40} {}\n", "Load:", summary.load);
  count("Successful requests:", summary.finished);
  count("Refused requests (429):", summary.refused);
  count("Failed requests:", summary.failed);
  number("Benchmark duration (s):", summary.seconds);
  count("Total input tokens:", summary.input_tokens);
  count("Total generated tokens:", summary.output_tokens);
  number("Request throughput (req/s):", summary.requests_per_second());
  number("Output token throughput (tok/s):", summary.output_per_second());
  number("Total Token throughput (tok/s):", summary.tokens_per_second());
  count("Peak concurrent requests:", summary.peak_streams);
  for (const Named& latency : latencies) {
    const Spread& spread = summary.*latency.spread;
    out += fmt::format("{:-^50}\n", latency.heading);
    number(fmt::format("Mean {} (ms):", latency.name), spread.mean);
    number(fmt::format("Median {} (ms):", latency.name), spread.median);
    number(fmt::format("P95 {} (ms):", latency.name), spread.p95);
    number(fmt::format("P99 {} (ms):", latency.name), spread.p99);
  }
  if (summary.engine) {
    const EngineFigures& engine = *summary.engine;
    out += fmt::format("{:-^50}\n", "Engine");
    out += fmt::format("{:<40} {} / {} / {}\n", "Steps (decode / mixed / prompt):", engine.decode_steps,
                       engine.mixed_steps, engine.prompt_steps);
    out += fmt::format("{:<40} {}\n", "Steps queued ahead:", engine.ahead_steps);
    number("Mean rows of a step:", engine.rows_per_step);
    number("Device idle (%):", 100.0 * engine.device_idle_share);
    number("Host time per step (us):", engine.host_microseconds);
    out += fmt::format("{:<40} {} / {}\n", "Graphs (replayed / recorded):", engine.replayed, engine.recorded);
    out += fmt::format("{:<40} {}\n", "Preemptions:", engine.preemptions);
  }
  if (summary.refused > 0) {
    out += fmt::format("{:-^50}\n", "Refusals");
    number("Median time to refusal (ms):", summary.refusal.median);
    number("P99 time to refusal (ms):", summary.refusal.p99);
  }
  out += std::string(50, '=') + "\n";
  if (!summary.first_problem.empty()) out += fmt::format("first failure: {}\n", summary.first_problem);
  return out;
}

std::string as_table(std::span<const LoadSummary> summaries) {
  std::string out =
      "| load | req/s | output tok/s | TTFT median | TTFT p99 | TPOT median | ITL p99 | refused | failed |\n"
      "|---|---:|---:|---:|---:|---:|---:|---:|---:|\n";
  for (const LoadSummary& row : summaries) {
    out += fmt::format("| {} | {:.2f} | {:.1f} | {:.1f} ms | {:.1f} ms | {:.2f} ms | {:.1f} ms | {} | {} |\n",
                       row.load, row.requests_per_second(), row.output_per_second(), row.first_token.median,
                       row.first_token.p99, row.per_token.median, row.gap.p99, row.refused, row.failed);
  }
  return out;
}

nlohmann::ordered_json as_json(const LoadSummary& summary) {
  nlohmann::ordered_json out = {{"load", summary.load},
                                {"level", summary.level},
                                {"duration", summary.seconds},
                                {"completed", summary.finished},
                                {"refused", summary.refused},
                                {"failed", summary.failed},
                                {"total_input_tokens", summary.input_tokens},
                                {"total_output_tokens", summary.output_tokens},
                                {"request_throughput", summary.requests_per_second()},
                                {"output_throughput", summary.output_per_second()},
                                {"total_token_throughput", summary.tokens_per_second()},
                                {"max_concurrent_requests", summary.peak_streams}};
  const auto add = [&](const std::string& key, const Spread& spread) {
    out["mean_" + key + "_ms"] = spread.mean;
    out["median_" + key + "_ms"] = spread.median;
    out["std_" + key + "_ms"] = spread.deviation;
    out["p95_" + key + "_ms"] = spread.p95;
    out["p99_" + key + "_ms"] = spread.p99;
  };
  for (const Named& latency : latencies) add(latency.key, summary.*latency.spread);
  add("refusal", summary.refusal);
  if (summary.engine) {
    const EngineFigures& engine = *summary.engine;
    out["engine"] = {{"decode_steps", engine.decode_steps},
                     {"mixed_steps", engine.mixed_steps},
                     {"prompt_steps", engine.prompt_steps},
                     {"ahead_steps", engine.ahead_steps},
                     {"rows_per_step", engine.rows_per_step},
                     {"device_idle_share", engine.device_idle_share},
                     {"host_microseconds_per_step", engine.host_microseconds},
                     {"graphs_replayed", engine.replayed},
                     {"graphs_recorded", engine.recorded},
                     {"preemptions", engine.preemptions}};
  }
  out["first_failure"] = nullptr;
  if (!summary.first_problem.empty()) out["first_failure"] = summary.first_problem;
  return out;
}

std::string as_svg(const std::string& title, const std::string& x_label,
                   std::span<const LoadSummary> summaries) {
  const auto panel = [&](const char* name, const char* unit) {
    return chart::Panel{
        .title = name, .x_label = x_label, .y_label = unit, .is_logarithmic = true, .series = {}};
  };
  std::vector<chart::Panel> panels = {panel("Throughput", "tokens/s")};
  for (const LoadSummary& row : summaries) {
    chart::add_point(panels[0].series, "output", {row.level, row.output_per_second(), 0.0});
  }
  for (const Named& latency : latencies) {
    chart::Panel shown = panel(latency.heading, "ms");
    for (const LoadSummary& row : summaries) {
      const Spread& spread = row.*latency.spread;
      chart::add_point(shown.series, "mean", {row.level, spread.mean, 0.0});
      chart::add_point(shown.series, "median", {row.level, spread.median, 0.0});
      chart::add_point(shown.series, "p99", {row.level, spread.p99, 0.0});
    }
    panels.push_back(std::move(shown));
  }
  return chart::as_svg(title, std::move(panels));
}

}  // namespace inferno::load
