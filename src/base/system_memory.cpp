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

// The files of the two control group versions; `mount` is relative to SystemRoots::cgroup.
struct GroupFiles {
  std::string_view mount, limit, usage;
};
constexpr GroupFiles version2 = {"", "memory.max", "memory.current"};
constexpr GroupFiles version1 = {"memory", "memory.limit_in_bytes", "memory.usage_in_bytes"};

// The folders of control group "/a/b" and of its parents, the innermost first.
std::vector<fs::path> folders_of(const fs::path& cgroup, const GroupFiles& files, std::string_view group) {
  const fs::path mount = files.mount.empty() ? cgroup : cgroup / files.mount;
  std::vector<fs::path> folders;
  for (fs::path path = fs::path(group).relative_path(); !path.empty(); path = path.parent_path()) {
    folders.push_back(mount / path);
  }
  folders.push_back(mount);
  return folders;
}

struct Group {
  fs::path folder;
  const GroupFiles* files;
};

// /proc/self/cgroup has lines such as "4:memory:/a/b" (version 1) and "0::/a/b" (version 2).
std::vector<Group> memory_groups(const SystemRoots& roots) {
  std::vector<Group> groups;
  std::istringstream lines(read_start(roots.proc / "self/cgroup", max_file).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':'), last = line.find(':', colon + 1);
    if (colon == std::string::npos || last == std::string::npos) continue;
    const std::string controllers = line.substr(colon + 1, last - colon - 1);
    const GroupFiles* files = controllers.empty() ? &version2 : controllers == "memory" ? &version1 : nullptr;
    if (files == nullptr) continue;
    for (fs::path& folder : folders_of(roots.cgroup, *files, line.substr(last + 1))) {
      groups.push_back({std::move(folder), files});
    }
  }
  return groups;
}

}  // namespace

SystemMemory system_memory(const SystemRoots& roots) {
  SystemMemory memory;
  const std::string info = read_start(roots.proc / "meminfo", max_file).value_or("");
  memory.total = field(info, "MemTotal:").value_or(0) * 1024;
  memory.available = field(info, "MemAvailable:").value_or(field(info, "MemFree:").value_or(0)) * 1024;
  memory.obtainable = memory.available;
  for (const Group& group : memory_groups(roots)) {
    const auto limit = number_in(group.folder / group.files->limit);  // nullopt for "max"
    if (!limit || *limit >= memory.total) continue;
    const std::uint64_t usage = number_in(group.folder / group.files->usage).value_or(0);
    // The kernel drops cached files when memory is needed.
    const std::string statistics = read_start(group.folder / "memory.stat", max_file).value_or("");
    const std::uint64_t held = usage - std::min(usage, field(statistics, "inactive_file ").value_or(0));
    memory.limit = std::min(memory.limit.value_or(*limit), *limit);
    memory.obtainable = std::min(memory.obtainable, *limit - std::min(*limit, held));
  }
  return memory;
}

}  // namespace inferno
