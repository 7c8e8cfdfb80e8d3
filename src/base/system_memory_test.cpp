#include "base/system_memory.h"

#include <gtest/gtest.h>

#include <fstream>

namespace inferno {
namespace {

namespace fs = std::filesystem;
constexpr std::uint64_t mebi = std::uint64_t{1} << 20;

// A made-up /proc and /sys.
class Memory : public ::testing::Test {
 protected:
  Memory() {
    write("proc/meminfo", "MemTotal:       1048576 kB\nMemFree:  1 kB\nMemAvailable:    524288 kB\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const fs::path& name, const std::string& text) const {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  fs::path root_ = fs::path(::testing::TempDir()) /
                   (std::string("memory_") + ::testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(Memory, IsTheMachinesIfNoGroupLimitsIt) {
  const SystemMemory memory = system_memory(SystemRoots::below(root_));
  EXPECT_EQ(memory.total, 1024 * mebi);
  EXPECT_EQ(memory.available, 512 * mebi);
  EXPECT_EQ(memory.limit, std::nullopt);
  EXPECT_EQ(memory.obtainable, 512 * mebi);
}

TEST_F(Memory, IsBoundByTheTightestGroupAbove) {
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/outer/inner/memory.max", "max\n");
  write("sys/fs/cgroup/outer/memory.max", std::to_string(300 * mebi));
  write("sys/fs/cgroup/outer/memory.current", std::to_string(120 * mebi));
  write("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file " + std::to_string(20 * mebi) + "\n");
  const SystemMemory memory = system_memory(SystemRoots::below(root_));
  EXPECT_EQ(memory.limit, 300 * mebi);
  EXPECT_EQ(memory.obtainable, 200 * mebi);
}

TEST_F(Memory, ReadsGroupsOfVersionOneToo) {
  write("proc/self/cgroup", "5:cpu:/\n4:memory:/box\n");
  write("sys/fs/cgroup/memory/box/memory.limit_in_bytes", std::to_string(64 * mebi));
  write("sys/fs/cgroup/memory/box/memory.usage_in_bytes", std::to_string(80 * mebi));
  write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712");
  const SystemMemory memory = system_memory(SystemRoots::below(root_));
  EXPECT_EQ(memory.limit, 64 * mebi);
  EXPECT_EQ(memory.obtainable, 0U);
}

TEST_F(Memory, AllowsTheCpusOfTheTightestGroupAbove) {
  EXPECT_EQ(cpu_quota(SystemRoots::below(root_)), std::nullopt);
  write("proc/self/cgroup", "0::/outer/inner\n");
  write("sys/fs/cgroup/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota(SystemRoots::below(root_)), std::nullopt);
  write("sys/fs/cgroup/outer/cpu.max", "150000 100000\n");
  write("sys/fs/cgroup/outer/inner/cpu.max", "400000 100000\n");
  EXPECT_EQ(cpu_quota(SystemRoots::below(root_)), 1.5);
  write("sys/fs/cgroup/outer/inner/cpu.max", "50000\n");
  EXPECT_EQ(cpu_quota(SystemRoots::below(root_)), 1.5);
}

TEST_F(Memory, ReadsCpuQuotasOfVersionOneToo) {
  write("proc/self/cgroup", "4:memory:/other\n5:cpu,cpuacct:/box/deep\n6:cpuset:/none\n");
  write("sys/fs/cgroup/cpu/box/deep/cpu.cfs_quota_us", "-1\n");
  write("sys/fs/cgroup/cpu/box/deep/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(SystemRoots::below(root_)), std::nullopt);
  write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "200000\n");
  write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota(SystemRoots::below(root_)), 2.0);
}

TEST_F(Memory, IgnoresFilesThatMakeNoSense) {
  write("proc/self/cgroup", "\n:\n::\n0::\nmemory\n0::/../../..\n");
  write("proc/meminfo", "MemTotal: many kB\n\nMemAvailable:");
  EXPECT_EQ(system_memory(SystemRoots::below(root_)).total, 0U);
  EXPECT_EQ(system_memory(SystemRoots::below(root_ / "nowhere")).total, 0U);
}

}  // namespace
}  // namespace inferno
