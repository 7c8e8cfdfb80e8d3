#include "cli/bench/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/sizes.h"

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
  out += fmt::format("weights {}, {} read per token, generated or loaded in {:.1f} s ({:.2f} GB/s)\n",
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

struct Point {
  double x = 0.0, y = 0.0, deviation = 0.0;
};
struct Series {
  std::string name;
  std::vector<Point> points;
  bool is_limit = false;  // drawn as a dashed line: the memory roofline
};
struct Panel {
  std::string title, x_label;
  bool is_logarithmic = false;  // the x axis, with a tick at each value
  std::vector<Series> series;
};

// Okabe and Ito: distinct for most kinds of colour blindness, readable on light and dark pages.
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

constexpr double panel_width = 600, panel_height = 330, left = 64, right = 176, top = 74, bottom = 48;
constexpr double plot_width = panel_width - left - right, plot_height = panel_height - top - bottom;

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;  // XML has no control characters
    }
  }
  return out;
}

// "1.5 k", "120", "0.8"
std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", value);
}

void add_point(std::vector<Series>& all, const std::string& name, const Point& point, bool is_limit = false) {
  auto found = std::ranges::find(all, name, &Series::name);
  if (found == all.end()) found = all.insert(all.end(), {name, {}, is_limit});
  found->points.push_back(point);
}

bool decodes(const Measurement& row) {
  return row.bytes_per_step > 0.0 && !row.test.starts_with("engine");
}

// Prompts run tens of times faster than decoding, so each needs its own axis.
Panel over_batch(const BenchReport& report, bool prompts) {
  Panel panel = {.title = prompts ? "Prompts by batch size" : "Throughput by batch size",
                 .x_label = "concurrent sequences",
                 .is_logarithmic = true,
                 .series = {}};
  for (const Measurement& row : report.rows) {
    if ((row.bytes_per_step == 0.0) != prompts) continue;
    add_point(panel.series, row.test,
              {static_cast<double>(row.batch), row.tokens_per_second(), row.deviation()});
  }
  return panel;
}

Panel over_depth(const BenchReport& report) {
  Panel panel = {
      .title = "Decoding by depth", .x_label = "tokens in the cache", .is_logarithmic = false, .series = {}};
  for (const Measurement& row : report.rows) {
    if (!decodes(row)) continue;
    const std::string name = fmt::format("tg{}, batch {}", row.tokens, row.batch);
    add_point(panel.series, name, {static_cast<double>(row.depth), row.tokens_per_second(), row.deviation()});
  }
  // One roofline is enough: that of the first series.
  for (const Measurement& row : report.rows) {
    if (!decodes(row) || panel.series.front().name != fmt::format("tg{}, batch {}", row.tokens, row.batch)) {
      continue;
    }
    if (const double limit = roofline(report, row); limit > 0.0) {
      add_point(panel.series, fmt::format("read roofline, batch {}", row.batch),
                {static_cast<double>(row.depth), limit, 0.0}, /*is_limit=*/true);
    }
  }
  return panel;
}

// 1, 2 or 5 times a power of ten, so that about five of them fill the axis.
double tick_step(double max) {
  const double rough = std::max(max, 1e-9) / 5.0;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (rough <= factor * power) return factor * power;
  }
  return 10.0 * power;
}

class Drawing {
 public:
  Drawing(const Panel& panel, double offset) : panel_(panel), offset_(offset) {
    for (Series series : panel.series) {
      std::ranges::sort(series.points, {}, &Point::x);
      for (const Point& p : series.points) {
        xs_.push_back(p.x);
        max_ = std::max(max_, p.y + p.deviation);
      }
      series_.push_back(std::move(series));
    }
    std::ranges::sort(xs_);
    xs_.erase(std::ranges::unique(xs_).begin(), xs_.end());
    step_ = tick_step(max_);
    max_ = std::ceil(max_ / step_) * step_;
  }

  std::string text() {
    out_ += fmt::format("<g transform=\"translate({:.0f} 0)\">\n", offset_);
    out_ += fmt::format("<text class=\"title\" x=\"{:.0f}\" y=\"52\">{}</text>\n", left, panel_.title);
    draw_axes();
    for (std::size_t i = 0; i < series_.size(); ++i) draw(series_[i], colours[i % colours.size()]);
    draw_legend();
    return out_ + "</g>\n";
  }

 private:
  double x_of(double x) const {
    const double first = panel_.is_logarithmic ? std::log2(xs_.front()) : 0.0;
    const double last = panel_.is_logarithmic ? std::log2(xs_.back()) : xs_.back();
    const double at = panel_.is_logarithmic ? std::log2(x) : x;
    return left + (last > first ? (at - first) / (last - first) : 0.5) * plot_width;
  }
  double y_of(double y) const { return top + plot_height * (1.0 - y / max_); }

  void draw_axes() {
    for (int i = 0; i * step_ <= max_ * 1.0001; ++i) {
      const double value = i * step_, y = y_of(value);
      out_ += fmt::format("<line class=\"{}\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                          i == 0 ? "axis" : "grid", left, y, left + plot_width, y);
      out_ += fmt::format("<text class=\"number\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left - 6, y + 4,
                          short_number(value));
    }
    double next_label = -1e9;
    for (const double x : xs_) {
      const double at = x_of(x);
      out_ += fmt::format("<line class=\"axis\" x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\"/>\n",
                          at, top + plot_height, at, top + plot_height + 4);
      if (at < next_label) continue;  // the labels would touch
      next_label = at + 38;
      out_ += fmt::format("<text class=\"below\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", at,
                          top + plot_height + 18, short_number(x));
    }
    out_ += fmt::format("<text class=\"below\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left + plot_width / 2,
                        panel_height - 10, panel_.x_label);
    out_ +=
        fmt::format("<text class=\"below\" transform=\"translate(14 {:.1f}) rotate(-90)\">tokens/s</text>\n",
                    top + plot_height / 2);
  }

  void draw(const Series& series, const char* colour) {
    std::string path;
    for (const Point& p : series.points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_of(p.x), y_of(p.y));
    }
    out_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"{}/>\n", path, colour,
                        series.is_limit ? " stroke-dasharray=\"5 4\"" : "");
    if (series.is_limit) return;
    for (const Point& p : series.points) {
      const double x = x_of(p.x);
      if (p.deviation > 0.0) {
        out_ += fmt::format(
            "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" "
            "stroke-width=\"1\"/>\n",
            x, y_of(p.y - std::min(p.y, p.deviation)), x, y_of(p.y + p.deviation), colour);
      }
      out_ += fmt::format(
          "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3.5\" fill=\"{}\"><title>{}: {:.2f} ± {:.2f} "
          "tokens/s</title>"
          "</circle>\n",
          x, y_of(p.y), colour, escaped(series.name), p.y, p.deviation);
    }
  }

  void draw_legend() {
    const double at = left + plot_width + 12;  // beside the plot, so that it hides nothing
    double y = top + 12;
    for (std::size_t i = 0; i < series_.size(); ++i, y += 16) {
      out_ += fmt::format(
          "<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"{}\" stroke-width=\"2\"{}/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
          at, y - 4, at + 18, y - 4, colours[i % colours.size()],
          series_[i].is_limit ? " stroke-dasharray=\"5 4\"" : "", at + 24, y, escaped(series_[i].name));
    }
  }

  const Panel& panel_;
  double offset_;
  std::vector<Series> series_;
  std::vector<double> xs_;
  double max_ = 0.0, step_ = 1.0;
  std::string out_;
};

// Greys for light pages, and others if the reader prefers dark ones.
constexpr std::string_view style = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #57606a }
.title { font-size: 14px; font-weight: 600; fill: #24292f }
.number { text-anchor: end }
.below { text-anchor: middle }
.axis { stroke: #8c959f }
.grid { stroke: #8c959f; stroke-opacity: 0.25 }
@media (prefers-color-scheme: dark) { text { fill: #9ea7b3 } .title { fill: #e6edf3 } }
</style>
)";

}  // namespace

std::string as_svg(const BenchReport& report) {
  std::vector<Panel> panels = {over_batch(report, /*prompts=*/false)};
  if (std::ranges::any_of(report.rows, decodes)) panels.push_back(over_depth(report));
  panels.push_back(over_batch(report, /*prompts=*/true));
  std::erase_if(panels, [](const Panel& panel) { return panel.series.empty(); });
  const double width = panel_width * static_cast<double>(std::max<std::size_t>(panels.size(), 1));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "role=\"img\">\n",
      width, panel_height);
  const std::string title = fmt::format("{} · {} · {} · inferno {} {}", report.model, report.weights,
                                        report.device, report.version, report.commit);
  out += fmt::format("<title>{}</title>\n{}<text class=\"title\" x=\"{:.0f}\" y=\"24\">{}</text>\n",
                     escaped(title), style, left, escaped(title));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += Drawing(panels[i], panel_width * static_cast<double>(i)).text();
  }
  return out + "</svg>\n";
}

}  // namespace inferno
