#include "base/cpu_topology.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "base/file.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_list = 4096;

// The NUMA node of a CPU: its folder has a link "node1". 0 where the kernel knows no nodes.
int node_of(int cpu, const fs::path& system) {
  std::error_code absent;
  for (const auto& entry : fs::directory_iterator(system / fmt::format("cpu/cpu{}", cpu), absent)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("node") && name.size() > 4 && name.find_first_not_of("0123456789", 4) == name.npos) {
      return std::stoi(name.substr(4));
    }
  }
  return 0;
}

}  // namespace

std::vector<int> allowed_cpus() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  if (sched_getaffinity(0, sizeof(mask), &mask) != 0) return {0};
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &mask)) cpus.push_back(cpu);
  }
  return cpus.empty() ? std::vector<int>{0} : cpus;
}

std::vector<int> one_for_each_core(std::span<const int> cpus, const fs::path& system) {
  std::set<std::string> cores;
  std::vector<int> chosen;
  for (const int cpu : cpus) {
    const fs::path file = system / fmt::format("cpu/cpu{}/topology/thread_siblings_list", cpu);
    if (cores.insert(read_start(file, max_list).value_or(fmt::format("{}", cpu))).second)
      chosen.push_back(cpu);
  }
  if (chosen.size() <= 2) return {cpus.begin(), cpus.end()};
  std::map<int, int> node, size;  // of each CPU; of each node
  for (const int cpu : chosen) ++size[node[cpu] = node_of(cpu, system)];
  std::ranges::stable_sort(chosen, [&](int a, int b) {
    const int of_a = node[a], of_b = node[b];
    return size[of_a] != size[of_b] ? size[of_a] > size[of_b] : of_a < of_b;
  });
  return chosen;
}

std::vector<std::vector<int>> places_of(int threads, std::span<const int> cpus, const fs::path& system) {
  const auto count = static_cast<std::size_t>(threads);
  if (count == 0 || count > cpus.size()) return {};
  std::vector<std::vector<int>> places;
  if (count == cpus.size()) {
    for (const int cpu : cpus) places.push_back({cpu});
    return places;
  }
  std::size_t end = count;
  const int last = node_of(cpus[end - 1], system);
  while (end < cpus.size() && node_of(cpus[end], system) == last) ++end;
  return {count, std::vector<int>(cpus.begin(), cpus.begin() + static_cast<std::ptrdiff_t>(end))};
}

}  // namespace inferno
