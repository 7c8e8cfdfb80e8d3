#include "cli/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/sizes.h"
#include "cli/bench/chart.h"

namespace inferno {
namespace {

using Json = nlohmann::ordered_json;

double best_bandwidth(const BenchReport& report) {
  return std::max(report.bandwidth, report.bandwidth_one_thread);
}

double seconds_per_step(const Measurement& row) {
  return row.batch / row.tokens_per_second();
}

// Bytes/s that decoding read; 0 for prompts, which are limited by arithmetic.
double moved(const Measurement& row) {
  return row.bytes_per_step == 0.0 ? 0.0 : row.bytes_per_step / seconds_per_step(row);
}

// RFC 4180: a field with separators or quotes is quoted.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + "\"";
}

Json row_json(const BenchReport& report, const Measurement& row) {
  Json entry = {{"test", row.test},
                {"batch", row.batch},
                {"tokens", row.tokens},
                {"depth", row.depth},
                {"tokens_per_second", row.tokens_per_second()},
                {"deviation", row.deviation()},
                {"milliseconds", milliseconds(row)},
                {"seconds", row.seconds}};
  if (row.mask_seconds > 0.0) {
    entry["mask_seconds"] = row.mask_seconds;
    entry["max_mask_seconds"] = row.max_mask_seconds;
  }
  if (row.bytes_per_step > 0.0) {
    entry["bytes_per_step"] = row.bytes_per_step;
    entry["bytes_per_second"] = moved(row);
    if (report.bandwidth > 0.0) entry["share_of_bandwidth"] = moved(row) / best_bandwidth(report);
  }
  return entry;
}

}  // namespace

double milliseconds(const Measurement& row) {
  return row.bytes_per_step > 0.0 ? 1e3 * seconds_per_step(row)
                                  : 1e3 * row.tokens * row.batch / row.tokens_per_second();
}

double roofline(const BenchReport& report, const Measurement& row) {
  return row.bytes_per_step == 0.0 ? 0.0 : best_bandwidth(report) / row.bytes_per_step * row.batch;
}

std::string as_markdown(const BenchReport& report) {
  std::string out = fmt::format("{} · {} · {} ({}), {} threads · inferno {}\n", report.model, report.weights,
                                report.device, report.kernels, report.threads, report.version);
  out += fmt::format("weights {}, {} read per token, loaded in {:.1f} s ({:.2f} GB/s)\n",
                     human_size(report.weight_bytes), human_size(report.token_bytes), report.load_seconds,
                     static_cast<double>(report.weight_bytes) / 1e9 / report.load_seconds);
  if (report.bandwidth > 0.0) {
    out += fmt::format(
        "read bandwidth {:.1f} GB/s with one thread, {:.1f} GB/s with {} (before and after the tests)\n",
        report.bandwidth_one_thread / 1e9, report.bandwidth / 1e9, report.threads);
  }
  for (const std::string& note : report.notes) out += fmt::format("note: {}\n", note);
  out += "\n| test | batch | tok/s | ± | ms/step | GB/s | of bandwidth |\n|---|--:|--:|--:|--:|--:|--:|\n";
  for (const Measurement& row : report.rows) {
    const bool decoding = row.bytes_per_step > 0.0;
    const double rate = row.tokens_per_second();
    out += fmt::format("| {} | {} | {:.2f} | {:.2f} | {:.2f} | {} | {} |\n", row.test, row.batch, rate,
                       row.deviation(), milliseconds(row),
                       decoding ? fmt::format("{:.2f}", moved(row) / 1e9) : "",
                       decoding && report.bandwidth > 0.0
                           ? fmt::format("{:.0f} %", 100.0 * moved(row) / best_bandwidth(report))
                           : "");
  }
  return out;
}

std::string as_json(const BenchReport& report) {
  Json rows = Json::array();
  for (const Measurement& row : report.rows) rows.push_back(row_json(report, row));
  Json conversions = Json::array();
  for (const Conversion& one : report.conversions) {
    conversions.push_back({{"tensor", one.tensor}, {"change", one.change}, {"why", one.why}});
  }
  const Json out = {{"commit", report.commit},
                    {"command", report.command},
                    {"date", report.date},
                    {"host", report.host},
                    {"model", report.model},
                    {"weights", report.weights},
                    {"device", report.device},
                    {"kernels", report.kernels},
                    {"threads", report.threads},
                    {"version", report.version},
                    {"parameters", report.parameters},
                    {"weight_bytes", report.weight_bytes},
                    {"token_bytes", report.token_bytes},
                    {"load_seconds", report.load_seconds},
                    {"read_bandwidth_one_thread", report.bandwidth_one_thread},
                    {"read_bandwidth", report.bandwidth},
                    {"notes", report.notes},
                    {"conversions", conversions},
                    {"results", rows}};
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string as_csv(const BenchReport& report) {
  std::string out =
      "model,weights,threads,test,batch,tokens_per_second,deviation,bytes_per_second,milliseconds,"
      "share_of_bandwidth\n";
  for (const Measurement& row : report.rows) {
    const bool has_share = row.bytes_per_step > 0.0 && report.bandwidth > 0.0;
    out += fmt::format("{},{},{},{},{},{:.3f},{:.3f},{:.0f},{:.4f},{}\n", csv_field(report.model),
                       csv_field(report.weights), report.threads, row.test, row.batch,
                       row.tokens_per_second(), row.deviation(), moved(row), milliseconds(row),
                       has_share ? fmt::format("{:.4f}", moved(row) / best_bandwidth(report)) : "");
  }
  return out;
}

namespace {

bool decodes(const Measurement& row) {
  return row.bytes_per_step > 0.0 && !row.test.starts_with("engine");
}

// Prompts run tens of times faster than decoding, so each needs its own axis.
chart::Panel over_batch(const BenchReport& report, bool prompts) {
  chart::Panel panel = {.title = prompts ? "Prompts by batch size" : "Throughput by batch size",
                        .x_label = "concurrent sequences",
                        .y_label = "tokens/s",
                        .is_logarithmic = true,
                        .series = {}};
  for (const Measurement& row : report.rows) {
    if ((row.bytes_per_step == 0.0) != prompts) continue;
    chart::add_point(panel.series, row.test,
                     {static_cast<double>(row.batch), row.tokens_per_second(), row.deviation()});
  }
  return panel;
}

chart::Panel over_depth(const BenchReport& report) {
  chart::Panel panel = {.title = "Decoding by depth",
                        .x_label = "tokens in the cache",
                        .y_label = "tokens/s",
                        .is_logarithmic = false,
                        .series = {}};
  for (const Measurement& row : report.rows) {
    if (!decodes(row)) continue;
    const std::string name = fmt::format("tg{}, batch {}", row.tokens, row.batch);
    chart::add_point(panel.series, name,
                     {static_cast<double>(row.depth), row.tokens_per_second(), row.deviation()});
  }
  // One roofline is enough: that of the first series.
  for (const Measurement& row : report.rows) {
    if (!decodes(row) || panel.series.front().name != fmt::format("tg{}, batch {}", row.tokens, row.batch)) {
      continue;
    }
    if (const double limit = roofline(report, row); limit > 0.0) {
      chart::add_point(panel.series, fmt::format("read roofline, batch {}", row.batch),
                       {static_cast<double>(row.depth), limit, 0.0}, /*is_limit=*/true);
    }
  }
  return panel;
}

}  // namespace

std::string as_svg(const BenchReport& report) {
  std::vector<chart::Panel> panels = {over_batch(report, /*prompts=*/false)};
  if (std::ranges::any_of(report.rows, decodes)) panels.push_back(over_depth(report));
  panels.push_back(over_batch(report, /*prompts=*/true));
  return chart::as_svg(fmt::format("{} · {} · {} · inferno {} {}", report.model, report.weights,
                                   report.device, report.version, report.commit),
                       std::move(panels));
}

}  // namespace inferno
