#include "base/system_memory.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_file = std::size_t{1} << 16;

std::optional<std::uint64_t> number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  std::uint64_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> number_in(const fs::path& path) {
  const auto text = read_start(path, max_file);
  return text ? number(*text) : std::nullopt;
}

// The number after "name" at the start of a line.
std::optional<std::uint64_t> field(std::string_view text, std::string_view name) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.starts_with(name)) return number(line.substr(name.size()));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

// The files of the two control group versions.
struct GroupFiles {
  std::string_view limit, usage;
};
constexpr GroupFiles version2 = {"memory.max", "memory.current"};
constexpr GroupFiles version1 = {"memory.limit_in_bytes", "memory.usage_in_bytes"};

bool lists(std::string_view controllers, std::string_view wanted) {  // "cpu,cpuacct"
  while (!controllers.empty()) {
    const std::string_view one = controllers.substr(0, controllers.find(','));
    if (one == wanted) return true;
    controllers.remove_prefix(std::min(controllers.size(), one.size() + 1));
  }
  return false;
}

// CPUs that one group allows; nullopt if it has no limit.
std::optional<double> quota_of(const ControlGroup& group) {
  std::optional<std::uint64_t> quota, period;
  if (group.version == 2) {  // "150000 100000" or "max 100000"
    const std::string text = read_start(group.folder / "cpu.max", max_file).value_or("");
    quota = number(text);
    period = number(std::string_view(text).substr(std::min(text.size(), text.find(' '))));
  } else {
    quota = number_in(group.folder / "cpu.cfs_quota_us");  // nullopt for -1, which means no limit
    period = number_in(group.folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota == 0 || *period == 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

}  // namespace

// /proc/self/cgroup has lines such as "4:memory:/a/b" (version 1) and "0::/a/b" (version 2).
std::vector<ControlGroup> control_groups(const SystemRoots& roots, std::string_view controller) {
  std::vector<ControlGroup> groups;
  std::istringstream lines(read_start(roots.proc / "self/cgroup", max_file).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':'), last = line.find(':', colon + 1);
    if (colon == std::string::npos || last == std::string::npos) continue;
    const std::string controllers = line.substr(colon + 1, last - colon - 1);
    if (!controllers.empty() && !lists(controllers, controller)) continue;
    const int version = controllers.empty() ? 2 : 1;
    const fs::path mount = version == 2 ? roots.cgroup : roots.cgroup / controller;
    const fs::path group = fs::path(line.substr(last + 1)).relative_path();
    for (fs::path path = group; !path.empty(); path = path.parent_path()) {
      groups.push_back({mount / path, version});
    }
    groups.push_back({mount, version});
  }
  return groups;
}

std::optional<double> cpu_quota(const SystemRoots& roots) {
  std::optional<double> tightest;
  for (const ControlGroup& group : control_groups(roots, "cpu")) {
    const auto quota = quota_of(group);
    if (quota) tightest = std::min(tightest.value_or(*quota), *quota);
  }
  return tightest;
}

SystemMemory system_memory(const SystemRoots& roots) {
  SystemMemory memory;
  const std::string info = read_start(roots.proc / "meminfo", max_file).value_or("");
  memory.total = field(info, "MemTotal:").value_or(0) * 1024;
  memory.available = field(info, "MemAvailable:").value_or(field(info, "MemFree:").value_or(0)) * 1024;
  memory.obtainable = memory.available;
  for (const ControlGroup& group : control_groups(roots, "memory")) {
    const GroupFiles& files = group.version == 2 ? version2 : version1;
    const auto limit = number_in(group.folder / files.limit);  // nullopt for "max"
    if (!limit || *limit >= memory.total) continue;
    const std::uint64_t usage = number_in(group.folder / files.usage).value_or(0);
    // The kernel drops cached files when memory is needed.
    const std::string statistics = read_start(group.folder / "memory.stat", max_file).value_or("");
    const std::uint64_t held = usage - std::min(usage, field(statistics, "inactive_file ").value_or(0));
    memory.limit = std::min(memory.limit.value_or(*limit), *limit);
    memory.obtainable = std::min(memory.obtainable, *limit - std::min(*limit, held));
  }
  return memory;
}

}  // namespace inferno
