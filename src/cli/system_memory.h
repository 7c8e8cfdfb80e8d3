// How much memory this process may have: the machine's, or less when a control group says so.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace inferno {

struct SystemMemory {
  std::uint64_t total = 0, available = 0;  // of the machine; 0 when /proc/meminfo cannot be read
  std::optional<std::uint64_t> limit;      // of the tightest control group, where there is one
  std::uint64_t obtainable = 0;            // what an allocation can count on: the smaller of both
};

// `root` holds proc and sys; tests bring their own. Whatever cannot be read counts as not there.
SystemMemory system_memory(const std::filesystem::path& root = "/");

}  // namespace inferno
