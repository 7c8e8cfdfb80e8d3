#include "base/cpu_topology.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace inferno {
namespace {

namespace fs = std::filesystem;

// A machine as /sys shows it.
class CpuTopology : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "topologyXXXXXX";
    ASSERT_NE(mkdtemp(path.data()), nullptr);
    root_ = path;
  }
  void TearDown() override { fs::remove_all(root_); }

  void add(int cpu, const std::string& siblings, int node) {
    const fs::path folder = root_ / fmt::format("cpu/cpu{}", cpu);
    fs::create_directories(folder / "topology");
    std::ofstream(folder / "topology/thread_siblings_list") << siblings << "\n";
    fs::create_directories(root_ / fmt::format("node/node{}", node));
    fs::create_directory_symlink(root_ / fmt::format("node/node{}", node),
                                 folder / fmt::format("node{}", node));
  }

  fs::path root_;
};

TEST_F(CpuTopology, TakesOneOfTheHyperthreadsOfACore) {
  for (const int cpu : {0, 1, 2}) {
    add(cpu, fmt::format("{},{}", cpu, cpu + 3), 0);
    add(cpu + 3, fmt::format("{},{}", cpu, cpu + 3), 0);
  }
  EXPECT_EQ(one_for_each_core(std::vector{0, 1, 2, 3, 4, 5}, root_), (std::vector{0, 1, 2}));
  EXPECT_EQ(one_for_each_core(std::vector{2, 3, 4, 5}, root_), (std::vector{2, 3, 4}));
}

TEST_F(CpuTopology, TakesEveryHyperthreadOfOneOrTwoCores) {
  add(0, "0-1", 0);
  add(1, "0-1", 0);
  EXPECT_EQ(one_for_each_core(std::vector{0, 1}, root_), (std::vector{0, 1}));
}

// Some machines number their CPUs in turn, node by node.
TEST_F(CpuTopology, KeepsTheCpusOfANodeTogether) {
  for (int cpu = 0; cpu < 8; ++cpu) add(cpu, fmt::format("{}", cpu), cpu % 2);
  const std::vector cpus = one_for_each_core(std::vector{0, 1, 2, 3, 4, 5, 6, 7}, root_);
  EXPECT_EQ(cpus, (std::vector{0, 2, 4, 6, 1, 3, 5, 7}));
  const std::vector first_node = {0, 2, 4, 6};
  EXPECT_EQ(places_of(1, cpus, root_), std::vector(1, first_node));
  EXPECT_EQ(places_of(4, cpus, root_), std::vector(4, first_node));
  EXPECT_EQ(places_of(5, cpus, root_), std::vector(5, cpus));
}

TEST_F(CpuTopology, GivesEachThreadACoreOnlyIfTheyTakeTheWholeMachine) {
  const std::vector cpus = {0, 1, 2, 3};
  EXPECT_EQ(places_of(4, cpus, root_), (std::vector<std::vector<int>>{{0}, {1}, {2}, {3}}));
  EXPECT_EQ(places_of(2, cpus, root_), std::vector(2, cpus));
  EXPECT_TRUE(places_of(5, cpus, root_).empty());
}

TEST_F(CpuTopology, BeginsWithTheNodeThatHasTheMost) {
  for (int cpu = 0; cpu < 6; ++cpu) add(cpu, fmt::format("{}", cpu), cpu < 2 ? 0 : 1);
  EXPECT_EQ(one_for_each_core(std::vector{0, 1, 2, 3, 4, 5}, root_), (std::vector{2, 3, 4, 5, 0, 1}));
}

TEST_F(CpuTopology, TakesAllCpusWhereTheKernelSaysNothing) {
  EXPECT_EQ(one_for_each_core(std::vector{0, 1, 2, 3}, root_), (std::vector{0, 1, 2, 3}));
}

TEST(AllowedCpus, HasAtLeastOne) {
  EXPECT_FALSE(allowed_cpus().empty());
}

}  // namespace
}  // namespace inferno
