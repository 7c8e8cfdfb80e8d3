#include "cli/system_memory.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_file = std::size_t{1} << 20;

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

// The two generations of control groups keep the same facts under different names.
struct GroupNames {
  std::string_view mount, limit, usage;
};
constexpr GroupNames second = {"sys/fs/cgroup", "memory.max", "memory.current"};
constexpr GroupNames first = {"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"};

// "4:memory:/a/b" or "0::/a/b" gives where that group and all above it live, the innermost first.
std::vector<fs::path> folders_of(const fs::path& root, const GroupNames& names, std::string_view group) {
  const fs::path mount = root / names.mount;
  std::vector<fs::path> folders;
  for (fs::path path = fs::path(group).relative_path(); !path.empty(); path = path.parent_path()) {
    folders.push_back(mount / path);
  }
  folders.push_back(mount);
  return folders;
}

struct Group {
  fs::path folder;
  const GroupNames* names;
};

std::vector<Group> memory_groups(const fs::path& root) {
  std::vector<Group> groups;
  std::istringstream lines(read_start(root / "proc/self/cgroup", max_file).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':'), last = line.find(':', colon + 1);
    if (colon == std::string::npos || last == std::string::npos) continue;
    const std::string controllers = line.substr(colon + 1, last - colon - 1);
    const GroupNames* names = controllers.empty() ? &second : controllers == "memory" ? &first : nullptr;
    if (names == nullptr) continue;
    for (fs::path& folder : folders_of(root, *names, line.substr(last + 1)))
      groups.push_back({std::move(folder), names});
  }
  return groups;
}

}  // namespace

SystemMemory system_memory(const fs::path& root) {
  SystemMemory memory;
  const std::string info = read_start(root / "proc/meminfo", max_file).value_or("");
  memory.total = field(info, "MemTotal:").value_or(0) * 1024;
  memory.available = field(info, "MemAvailable:").value_or(field(info, "MemFree:").value_or(0)) * 1024;
  memory.obtainable = memory.available;
  for (const Group& group : memory_groups(root)) {
    const auto limit = number_in(group.folder / group.names->limit);  // "max" is no number, hence no limit
    if (!limit || *limit >= memory.total) continue;
    const std::uint64_t usage = number_in(group.folder / group.names->usage).value_or(0);
    // Cached files are given back when memory is wanted.
    const std::string statistics = read_start(group.folder / "memory.stat", max_file).value_or("");
    const std::uint64_t held = usage - std::min(usage, field(statistics, "inactive_file ").value_or(0));
    memory.limit = std::min(memory.limit.value_or(*limit), *limit);
    memory.obtainable = std::min(memory.obtainable, *limit - std::min(*limit, held));
  }
  return memory;
}

}  // namespace inferno
