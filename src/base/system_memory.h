// How much host memory and how many CPUs this process can use: the machine's, or less if a control group
// limits them. Loading a model, `plan` and `doctor` all ask here, so that they agree.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace inferno {

// Where the kernel exposes its state. Tests provide their own tree.
struct SystemRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";

  static SystemRoots below(const std::filesystem::path& root) {
    return {root / "proc", root / "sys/fs/cgroup"};
  }
};

// The folder of a control group in the kernel's tree.
struct ControlGroup {
  std::filesystem::path folder;
  int version = 2;  // of the control group interface: 1 or 2
};
// The groups that may limit this process through the controller "memory" or "cpu": its own and all parents,
// because a parent may have the tightest limit. Groups of both versions.
std::vector<ControlGroup> control_groups(const SystemRoots& roots, std::string_view controller);

// CPUs that the tightest group allows, for example 1.5; nullopt if there is no limit.
std::optional<double> cpu_quota(const SystemRoots& roots = {});

struct SystemMemory {
  std::uint64_t total = 0, available = 0;  // of the machine; 0 if /proc/meminfo cannot be read
  std::optional<std::uint64_t> limit;      // of the tightest control group, if there is one
  std::uint64_t obtainable = 0;  // what can still be allocated: limited by machine and control group
};

// A file that cannot be read counts as absent.
SystemMemory system_memory(const SystemRoots& roots = {});

}  // namespace inferno
