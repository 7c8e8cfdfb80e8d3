// How much host memory this process can use: the machine's, or less if a control group limits it. Loading a
// model, `plan` and `doctor` all ask here, so that they agree.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace inferno {

// Where the kernel exposes its state. Tests provide their own tree.
struct SystemRoots {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";

  static SystemRoots below(const std::filesystem::path& root) {
    return {root / "proc", root / "sys/fs/cgroup"};
  }
};

struct SystemMemory {
  std::uint64_t total = 0, available = 0;  // of the machine; 0 if /proc/meminfo cannot be read
  std::optional<std::uint64_t> limit;      // of the tightest control group, if there is one
  std::uint64_t obtainable = 0;  // what can still be allocated: limited by machine and control group
};

// Reads control groups of both versions, the process's own group and all its parents, because a parent may
// have the tightest limit. A file that cannot be read counts as absent.
SystemMemory system_memory(const SystemRoots& roots = {});

}  // namespace inferno
