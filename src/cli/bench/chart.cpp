#include "cli/bench/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

namespace inferno::chart {
namespace {

// Okabe and Ito: distinct for most kinds of colour blindness, readable on light and dark pages.
constexpr std::array colours = {"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"};

constexpr double panel_width = 600, panel_height = 330, left = 64, right = 176, top = 74, bottom = 48;
constexpr double plot_width = panel_width - left - right, plot_height = panel_height - top - bottom;

// "1.5 k", "120", "0.8"
std::string short_number(double value) {
  if (value >= 1e6) return fmt::format("{:g} M", value / 1e6);
  if (value >= 1e4) return fmt::format("{:g} k", value / 1e3);
  return fmt::format("{:g}", value);
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
    out_ += fmt::format("<text class=\"below\" transform=\"translate(14 {:.1f}) rotate(-90)\">{}</text>\n",
                        top + plot_height / 2, panel_.y_label);
  }

  void draw(const Series& series, const char* colour) {
    std::string path;
    for (const Point& p : series.points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : " L", x_of(p.x), y_of(p.y));
    }
    // A limit has no marks: with one point it would not be seen.
    if (series.is_limit && series.points.size() == 1) {
      const double x = x_of(series.points[0].x), y = y_of(series.points[0].y);
      path = fmt::format("M{:.1f} {:.1f} L{:.1f} {:.1f}", x - 16, y, x + 16, y);
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
          "{}</title></circle>\n",
          x, y_of(p.y), colour, escaped(series.name), p.y, p.deviation, panel_.y_label);
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

void add_point(std::vector<Series>& all, const std::string& name, const Point& point, bool is_limit) {
  auto found = std::ranges::find(all, name, &Series::name);
  if (found == all.end()) found = all.insert(all.end(), {name, {}, is_limit});
  found->points.push_back(point);
}

std::string as_svg(const std::string& title, std::vector<Panel> panels) {
  std::erase_if(panels, [](const Panel& panel) { return panel.series.empty(); });
  const double width = panel_width * static_cast<double>(std::max<std::size_t>(panels.size(), 1));
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" "
      "role=\"img\">\n",
      width, panel_height);
  out += fmt::format("<title>{}</title>\n{}<text class=\"title\" x=\"{:.0f}\" y=\"24\">{}</text>\n",
                     escaped(title), style, left, escaped(title));
  for (std::size_t i = 0; i < panels.size(); ++i) {
    out += Drawing(panels[i], panel_width * static_cast<double>(i)).text();
  }
  return out + "</svg>\n";
}

}  // namespace inferno::chart
