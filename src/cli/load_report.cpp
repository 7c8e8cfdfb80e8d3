#include "cli/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>

#include "cli/printable.h"

namespace inferno {
namespace {

// Names that get a line each; when there are more of which the same is to be said, it is said once.
constexpr std::size_t most_alike = 3;

// "model.layers.12.up" becomes "model.layers.*.up".
std::string without_numbers(const std::string& name) {
  std::string out;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const bool is_digit = name[at] >= '0' && name[at] <= '9';
    const bool begins_part = at == 0 || name[at - 1] == '.';
    if (!is_digit || !begins_part) {
      out += name[at];
      continue;
    }
    const std::size_t end = std::min(name.find_first_not_of("0123456789", at), name.size());
    const bool is_part = end == name.size() || name[end] == '.';
    out += is_part ? "*" : name.substr(at, end - at);
    at = end - 1;
  }
  return out;
}

}  // namespace

std::vector<std::string> conversion_lines(const std::vector<Conversion>& conversions) {
  struct Group {
    const Conversion* first = nullptr;
    std::size_t count = 0;
  };
  std::vector<Group> groups;
  std::map<std::string, std::size_t> places;
  for (const Conversion& one : conversions) {
    const std::string key = without_numbers(one.tensor) + "\n" + one.change + "\n" + one.why;
    const auto [place, fresh] = places.try_emplace(key, groups.size());
    if (fresh) groups.push_back({&one, 0});
    ++groups[place->second].count;
  }
  std::vector<std::string> lines;
  for (const Group& group : groups) {
    const Conversion& one = *group.first;
    const auto is_alike = [&](const Group& other) {
      return other.first->change == one.change && other.first->why == one.why;
    };
    const auto alike = static_cast<std::size_t>(std::ranges::count_if(groups, is_alike));
    std::string name = group.count == 1 ? one.tensor : without_numbers(one.tensor);
    std::size_t tensors = group.count;
    if (alike > most_alike) {
      if (&*std::ranges::find_if(groups, is_alike) != &group) continue;
      tensors = 0;
      for (const Group& other : groups) tensors += is_alike(other) ? other.count : 0;
      name += fmt::format(" and {} other names", alike - 1);
    }
    if (tensors > 1) name += fmt::format(" ({} tensors)", tensors);
    lines.push_back(fmt::format("{}: {}; {}", name, one.change, one.why));
  }
  return lines;
}

void print_load_report(const LoadReport& report, double seconds) {
  const double gigabytes = static_cast<double>(report.weight_bytes) / 1e9;
  fmt::print(stderr, "loaded {:.2f} GB in {:.2f} s, {:.2f} GB/s\n", gigabytes, seconds, gigabytes / seconds);
  for (const std::string& line : conversion_lines(report.conversions)) {
    fmt::print(stderr, "converted: {}\n", printable(line));
  }
}

}  // namespace inferno
