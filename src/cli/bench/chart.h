// Line charts as SVG, for light and dark pages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inferno::chart {

struct Point {
  double x = 0.0, y = 0.0, deviation = 0.0;
};

struct Series {
  std::string name;
  std::vector<Point> points;
  bool is_limit = false;  // drawn as a dashed line
};

struct Panel {
  std::string title, x_label, y_label;
  bool is_logarithmic = false;  // the x axis, with a tick at each value
  std::vector<Series> series;
};

// Text as XML, for elements and attributes.
std::string escaped(std::string_view text);

// Adds a point to the series of this name, which begins with its first point.
void add_point(std::vector<Series>& all, const std::string& name, const Point& point, bool is_limit = false);

// The panels side by side under a title. Panels without series are left out.
std::string as_svg(const std::string& title, std::vector<Panel> panels);

}  // namespace inferno::chart
