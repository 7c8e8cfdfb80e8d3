// GPU detection, with fake drivers that fail in every way in which real ones have been observed to fail.
#include "backend/cuda/probe.h"
#include "support/source_dir.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <map>

namespace inferno::cuda {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

class Probe : public ::testing::Test {
 protected:
  Probe() { fs::create_directories(sources_.root); }
  void TearDown() override {
    for (const auto& [name, value] : set_) unsetenv(name.c_str());
    fs::remove_all(sources_.root);
  }

  void fake(const std::string& name, const std::string& value) {
    set_[name] = value;
    setenv(name.c_str(), value.c_str(), 1);
  }

  void plug_in_a_gpu() {
    const fs::path device = sources_.root / "sys/bus/pci/devices/0000:01:00.0";
    fs::create_directories(device);
    std::ofstream(device / "vendor") << "0x10de\n";
    std::ofstream(device / "class") << "0x030200\n";
  }

  std::string why() const { return explain(probe(sources_), sources_).why; }

  ProbeSources sources_ = {
      .driver_library = FAKE_DRIVER "/libcuda.so.1",
      .management_library = FAKE_DRIVER "/libnvidia-ml.so.1",
      .root = fs::path(::testing::TempDir()) /
              ("probe" + std::to_string(::testing::UnitTest::GetInstance()->random_seed()) +
               ::testing::UnitTest::GetInstance()->current_test_info()->name())};

 private:
  std::map<std::string, std::string> set_;
};

TEST_F(Probe, DescribesAReadyDevice) {
  const GpuProbe found = probe(sources_);
  ASSERT_EQ(found.state, DriverState::ready);
  ASSERT_EQ(found.devices.size(), 1U);
  const GpuDevice& device = found.devices[0];
  EXPECT_EQ(device.name, "NVIDIA Fake 9000");
  EXPECT_EQ(device.total_bytes, std::uint64_t{80} << 30);
  EXPECT_EQ(device.free_bytes, std::uint64_t{60} << 30);
  EXPECT_EQ(device.major, 9);
  EXPECT_EQ(device.minor, 0);
  EXPECT_FALSE(device.is_slice);
  EXPECT_EQ(found.cuda_version, 13000);
  EXPECT_EQ(found.driver_version, "580.95.05");
}

TEST_F(Probe, DoesWithoutTheManagementLibrary) {
  sources_.management_library = "libnot-there.so.1";
  const GpuProbe found = probe(sources_);
  ASSERT_EQ(found.state, DriverState::ready);
  EXPECT_EQ(found.devices[0].free_bytes, std::nullopt);
  EXPECT_EQ(found.driver_version, "");
}

TEST_F(Probe, ReportsUncorrectedMemoryErrors) {
  fake("FAKE_NVML_ERRORS", "3");
  EXPECT_EQ(probe(sources_).devices.at(0).memory_errors, 3U);
}

TEST_F(Probe, KnowsASliceAndNotItsFreeMemory) {
  fake("FAKE_CUDA_NAME", "NVIDIA H100 80GB HBM3 MIG 1g.10gb");
  const GpuDevice device = probe(sources_).devices.at(0);
  EXPECT_TRUE(device.is_slice);
  EXPECT_EQ(device.free_bytes, std::nullopt);
}

TEST_F(Probe, TellsAMachineWithoutAGpuFromOneWithoutADriver) {
  sources_.driver_library = "libnot-there.so.1";
  EXPECT_EQ(probe(sources_).state, DriverState::no_hardware);
  EXPECT_EQ(why(), "");
  plug_in_a_gpu();
  EXPECT_EQ(probe(sources_).state, DriverState::no_library);
  EXPECT_THAT(why(), HasSubstr("libcuda.so.1 is not installed"));
}

TEST_F(Probe, NoticesALibraryThatIsNoDriver) {
  sources_.driver_library = FAKE_DRIVER "/libnothing.so";
  EXPECT_EQ(probe(sources_).state, DriverState::broken_library);
  sources_.driver_library = INFERNO_SOURCE_DIR "/README.md";
  EXPECT_EQ(probe(sources_).state, DriverState::broken_library);
  EXPECT_THAT(why(), HasSubstr("cannot be used"));
}

TEST_F(Probe, GivesEachFaultOfTheDriverItsOwnCause) {
  const std::map<int, std::pair<DriverState, std::string>> faults = {
      {34, {DriverState::broken_library, "cannot be used"}},
      {100, {DriverState::no_device, "finds no GPU (CUDA_ERROR_NO_DEVICE)"}},
      {304, {DriverState::failed, "failed with code 304"}},
      {802, {DriverState::not_ready, "not ready"}},
      {803, {DriverState::mismatch, "different versions"}},
      {999, {DriverState::failed, "failed with code 999"}},
      {123456, {DriverState::failed, "failed with code 123456"}},
  };
  for (const auto& [code, expected] : faults) {
    fake("FAKE_CUDA_INIT", std::to_string(code));
    const GpuProbe found = probe(sources_);
    EXPECT_EQ(found.state, expected.first) << code;
    EXPECT_EQ(found.code, code);
    EXPECT_THAT(why(), HasSubstr(expected.second)) << code;
    EXPECT_NE(explain(found, sources_).next, "") << code;
  }
}

TEST_F(Probe, NamesTheVariableThatHidesEveryDevice) {
  fake("FAKE_CUDA_COUNT", "0");
  EXPECT_EQ(probe(sources_).state, DriverState::no_device);
  sources_.visible_devices = "seven";
  EXPECT_EQ(probe(sources_).state, DriverState::hidden);
  EXPECT_THAT(why(), HasSubstr("CUDA_VISIBLE_DEVICES=\"seven\""));
}

TEST_F(Probe, SurvivesADriverThatListsWhatItDoesNotDescribe) {
  fake("FAKE_CUDA_GET", "101");
  EXPECT_EQ(probe(sources_).state, DriverState::failed);
}

TEST(Architecture, RunsOnItsOwnGenerationOnly) {
  EXPECT_TRUE(runs_on("90a", 9, 0));
  EXPECT_FALSE(runs_on("90a", 10, 0));
  EXPECT_TRUE(runs_on("80", 8, 0));
  EXPECT_TRUE(runs_on("80", 8, 9));
  EXPECT_FALSE(runs_on("86", 8, 0));
  EXPECT_FALSE(runs_on("80", 9, 0));
  EXPECT_TRUE(runs_on("100a", 10, 0));
  EXPECT_FALSE(runs_on("junk", 8, 0));
}

TEST(Device, IsUnusableForReasonsThatAreNamed) {
  const GpuDevice hopper = {.name = "H200", .major = 9, .minor = 0};
  const GpuDevice ampere = {.name = "A100", .major = 8, .minor = 0};
  const GpuProbe driver = {.state = DriverState::ready, .cuda_version = 13000, .driver_version = "580"};
  const GpuProbe old_driver = {.state = DriverState::ready, .cuda_version = 12040, .driver_version = "550.1"};
  const CudaBuild build = {.toolkit_version = 13000, .architectures = {"90a"}};

  EXPECT_EQ(why_unusable(hopper, driver, build), std::nullopt);
  EXPECT_THAT(why_unusable(hopper, driver, {})->why, HasSubstr("without the CUDA backend"));
  EXPECT_THAT(why_unusable(hopper, old_driver, build)->why, HasSubstr("550.1 supports CUDA 12.4 at most"));
  const auto wrong = why_unusable(ampere, driver, build);
  EXPECT_THAT(wrong->why, HasSubstr("8.0, this program has kernels for sm_90a"));
  EXPECT_THAT(wrong->next, HasSubstr("INFERNO_CUDA_ARCHITECTURES=80"));
}

}  // namespace
}  // namespace inferno::cuda
