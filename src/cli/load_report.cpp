#include "cli/load_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/utf8.h"

namespace inferno {
namespace {

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
  struct Name {
    const std::string* first = nullptr;
    std::size_t count = 0;
  };
  struct Change {
    std::string text;
    std::vector<std::pair<std::string, Name>> names;
  };
  std::vector<Change> changes;
  for (const Conversion& one : conversions) {
    const std::string text = fmt::format("{}; {}", one.change, one.why), kind = without_numbers(one.tensor);
    auto change = std::ranges::find(changes, text, &Change::text);
    if (change == changes.end()) change = changes.insert(change, {text, {}});
    auto name = std::ranges::find(change->names, kind, &std::pair<std::string, Name>::first);
    if (name == change->names.end()) name = change->names.insert(name, {kind, {&one.tensor, 0}});
    ++name->second.count;
  }
  std::vector<std::string> lines;
  for (const Change& change : changes) {
    std::string names;
    for (const auto& [kind, name] : change.names) {
      if (!names.empty()) names += ", ";
      names += name.count == 1 ? *name.first : fmt::format("{} ({} tensors)", kind, name.count);
    }
    lines.push_back(fmt::format("{}: {}", names, change.text));
  }
  return lines;
}

void print_load_report(const LoadReport& report, double seconds) {
  const double gigabytes = static_cast<double>(report.weights.bytes) / 1e9;
  fmt::print(stderr, "loaded {:.2f} GB in {:.2f} s, {:.2f} GB/s\n", gigabytes, seconds, gigabytes / seconds);
  for (const std::string& line : conversion_lines(report.conversions)) {
    fmt::print(stderr, "converted: {}\n", printable(line));
  }
}

}  // namespace inferno
