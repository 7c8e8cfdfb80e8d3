#include "cli/bench/constrain_bench.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/bench/load/load_statistics.h"
#include "grammar/refusal.h"

namespace inferno::constrain {
namespace {

std::string row(std::string_view name, const std::vector<double>& values) {
  const load::Spread times = load::spread_of(values);
  return fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {:.2f} | {:.2f} |\n", name, values.size(),
                     times.mean, times.median, times.p99, times.p999, times.max);
}

nlohmann::ordered_json as_json(const std::vector<double>& values) {
  const load::Spread times = load::spread_of(values);
  return {{"count", values.size()}, {"mean", times.mean},  {"p50", times.median},
          {"p99", times.p99},       {"p99.9", times.p999}, {"max", times.max}};
}

double share(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// A virtual machine that is kept waiting counts that as time of its threads, which a single mask cannot be
// told apart from.
CaseCosts median_of_runs(const Settings& settings, const Case& one, int repeat) {
  std::vector<CaseCosts> runs;
  for (int i = 0; i < repeat; ++i) runs.push_back(measure_case(settings, one));
  CaseCosts costs = runs.front();
  const auto over_runs = [&](auto time) {
    std::vector<double> times;
    for (const CaseCosts& run : runs) times.push_back(time(run));
    return median(std::move(times));
  };
  costs.compile_ms = over_runs([](const CaseCosts& run) { return run.compile_ms; });
  for (std::size_t i = 0; i < costs.masks_us.size(); ++i) {
    // A run that met a limit is shorter.
    costs.masks_us[i] = over_runs(
        [&](const CaseCosts& run) { return i < run.masks_us.size() ? run.masks_us[i] : costs.masks_us[i]; });
  }
  return costs;
}

}  // namespace

void measure_constraints(Report& report, const Settings& settings, std::string_view lines, int repeat) {
  report.repeat = repeat;
  double slowest_compile = 0.0, slowest_mask = 0.0;
  for_each_case(lines, [&](const Case& one) {
    ++report.cases;
    CaseCosts costs;
    try {
      costs = median_of_runs(settings, one, repeat);
    } catch (const grammar::RefusedError&) {
      ++report.refused;
      return;
    }
    report.compile_ms.push_back(costs.compile_ms);
    report.masks_us.insert(report.masks_us.end(), costs.masks_us.begin(), costs.masks_us.end());
    report.tokens += costs.tokens;
    report.forced += costs.forced;
    report.ended += costs.ended;
    const double slowest = costs.masks_us.empty() ? 0.0 : std::ranges::max(costs.masks_us);
    if (slowest > slowest_mask) report.slowest_mask = one.id;
    if (costs.compile_ms > slowest_compile) report.slowest_compile = one.id;
    slowest_mask = std::max(slowest_mask, slowest);
    slowest_compile = std::max(slowest_compile, costs.compile_ms);
  });
}

std::string as_markdown(const Report& report) {
  std::string out = fmt::format(
      "{} · {} tokens, trie built in {:.0f} ms · {} · one thread, median of {} runs · inferno {}\n",
      report.model, report.vocabulary, report.build_ms, report.host, report.repeat, report.version);
  out += fmt::format("{} constraints, {} of them refused; {} tokens, {:.1f} % of them forced\n", report.cases,
                     report.refused, report.tokens, 100.0 * share(report.forced, report.tokens));
  if (report.ended > 0)
    out += fmt::format("{} texts could not be followed within the limits\n", report.ended);
  if (!report.slowest_mask.empty())
    out += fmt::format("slowest to compile: {}, slowest mask: {}\n", report.slowest_compile,
                       report.slowest_mask);
  out += "\n| | count | mean | p50 | p99 | p99.9 | max |\n|---|--:|--:|--:|--:|--:|--:|\n";
  return out + row("compile, ms", report.compile_ms) + row("mask, us", report.masks_us);
}

nlohmann::ordered_json as_json(const Report& report) {
  return {{"commit", report.commit},
          {"command", report.command},
          {"date", report.date},
          {"host", report.host},
          {"version", report.version},
          {"model", report.model},
          {"vocabulary", report.vocabulary},
          {"trie_ms", report.build_ms},
          {"repeat", report.repeat},
          {"constraints", report.cases},
          {"refused", report.refused},
          {"beyond_limits", report.ended},
          {"tokens", report.tokens},
          {"forced", report.forced},
          {"compile_ms", as_json(report.compile_ms)},
          {"mask_us", as_json(report.masks_us)}};
}

}  // namespace inferno::constrain
