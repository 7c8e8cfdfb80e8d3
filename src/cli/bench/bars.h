// Horizontal bars as SVG, for light and dark pages.
#pragma once

#include <string>
#include <vector>

namespace inferno::chart {

struct Bar {
  std::string name;  // bars of one name have one colour
  double value = 0.0;
};

struct BarGroup {
  std::string label;
  std::vector<Bar> bars;
};

struct BarPanel {
  std::string title;
  std::vector<BarGroup> groups;  // on a scale of their own
};

// The panels below each other under a title, on a background of their own. Panels without groups are left
// out. The same panels always give the same bytes.
std::string as_bars(const std::string& title, std::vector<BarPanel> panels);

}  // namespace inferno::chart
