#include "cli/bench/bars.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/sizes.h"
#include "cli/bench/chart.h"

namespace inferno::chart {
namespace {

constexpr double width = 860, left = 350, right = 110, top = 62;
constexpr double bar_height = 13, group_gap = 9, panel_gap = 22, title_height = 26;

// A fill for light pages and one for dark ones, in the order in which names appear.
constexpr std::array fills = {"one", "two", "three"};
constexpr std::string_view style = R"(<style>
text { font: 12px system-ui, sans-serif; fill: #424a53 }
.title { font-size: 14px; font-weight: 600; fill: #24292f }
.label { text-anchor: end }
.paper { fill: #ffffff; stroke: #d0d7de }
.one { fill: #0969da } .two { fill: #afb8c1 } .three { fill: #bf8700 }
@media (prefers-color-scheme: dark) {
text { fill: #c0c8d1 } .title { fill: #e6edf3 } .paper { fill: #0d1117; stroke: #30363d }
.one { fill: #58a6ff } .two { fill: #57606a } .three { fill: #d29922 }
}
</style>
)";

double height_of(const BarPanel& panel) {
  double height = title_height + panel_gap;
  for (const BarGroup& group : panel.groups)
    height += bar_height * static_cast<double>(group.bars.size()) + group_gap;
  return height;
}

class Drawing {
 public:
  explicit Drawing(const std::vector<BarPanel>& panels) {
    for (const BarPanel& panel : panels) {
      for (const BarGroup& group : panel.groups) {
        for (const Bar& bar : group.bars) {
          if (std::ranges::find(names_, bar.name) == names_.end()) names_.push_back(bar.name);
        }
      }
    }
    draw_legend();
    for (const BarPanel& panel : panels) draw(panel);
  }

  std::string take() { return std::move(out_); }

 private:
  std::string_view fill_of(const std::string& name) const {
    const auto at = static_cast<std::size_t>(std::ranges::find(names_, name) - names_.begin());
    return fills[at % fills.size()];
  }

  void draw_legend() {
    double x = left;
    for (const std::string& name : names_) {
      out_ += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"38\" width=\"12\" height=\"12\"/><text x=\"{:.1f}\" "
          "y=\"48.5\">{}</text>\n",
          fill_of(name), x, x + 18, escaped(name));
      x += 120;
    }
  }

  void draw(const BarPanel& panel) {
    double max = 0.0;
    for (const BarGroup& group : panel.groups) {
      for (const Bar& bar : group.bars) max = std::max(max, bar.value);
    }
    out_ += fmt::format("<text class=\"title\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left, y_ + 16,
                        escaped(panel.title));
    y_ += title_height;
    for (const BarGroup& group : panel.groups) {
      const double height = bar_height * static_cast<double>(group.bars.size());
      out_ += fmt::format("<text class=\"label\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", left - 10,
                          y_ + height / 2 + 4, escaped(group.label));
      for (const Bar& bar : group.bars) draw(bar, max);
      y_ += group_gap;
    }
    y_ += panel_gap;
  }

  void draw(const Bar& bar, double max) {
    const double length = max > 0.0 ? bar.value / max * (width - left - right) : 0.0;
    out_ += fmt::format(
        "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        fill_of(bar.name), left, y_, std::max(length, 1.0), bar_height - 1, left + std::max(length, 1.0) + 6,
        y_ + 10.5, grouped(static_cast<std::uint64_t>(std::llround(bar.value))));
    y_ += bar_height;
  }

  std::vector<std::string> names_;
  std::string out_;
  double y_ = top;
};

}  // namespace

std::string as_bars(const std::string& title, std::vector<BarPanel> panels) {
  std::erase_if(panels, [](const BarPanel& panel) { return panel.groups.empty(); });
  double height = top;
  for (const BarPanel& panel : panels) height += height_of(panel);
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\" role=\"img\">\n<title>{2}</title>\n{3}<rect class=\"paper\" x=\".5\" y=\".5\" "
      "width=\"{4:.0f}\" height=\"{5:.0f}\" rx=\"8\"/>\n<text class=\"title\" x=\"20\" y=\"24\">{2}</text>\n",
      width, height, escaped(title), style, width - 1, height - 1);
  return out + Drawing(panels).take() + "</svg>\n";
}

}  // namespace inferno::chart
