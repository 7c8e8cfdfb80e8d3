#include "cli/doctor/recommendation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace inferno::doctor {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::uint64_t gigabyte = 1'000'000'000;

Machine machine(std::uint64_t memory, double bandwidth) {
  Machine one = {.device = {}, .bandwidth = bandwidth, .memory = memory};
  one.device.name = "CPU";
  one.device.free_bytes = memory;
  return one;
}

std::vector<std::string> names(const std::vector<Recommendation>& models) {
  std::vector<std::string> all;
  for (const Recommendation& one : models) all.push_back(one.name);
  return all;
}

constexpr std::string_view table =
    "large org/large 60 open - 0\n"
    "mixture org/mixture 20 open - 0 reads 2\n"
    "medium org/medium 8 open - 0\n"
    "small org/small 2 open - 0\n"
    "mini org/mini 0.6 open - 0\n"
    "tiny org/tiny 0.5 open - 0\n"
    "writer org/writer 6 open - 0 text\n"
    "second = medium\n";

TEST(Recommendation, PrefersALargeModelThatIsQuantizedToASmallOne) {
  const auto models =
      recommend(hub::read_aliases("large org/large 8 gated org/small:Q4_0 2\nsmall org/s 2.5 open - 0\n"),
                machine(64 * gigabyte, 20e9));
  EXPECT_THAT(names(models), ElementsAre("large", "small"));
  EXPECT_EQ(models[0].bytes, 2 * gigabyte);
}

TEST(Recommendation, IsTheLargestThatIsFluentFastAndInstant) {
  const auto models = recommend(hub::read_aliases(table), machine(64 * gigabyte, 60e9));
  EXPECT_THAT(names(models), ElementsAre("mixture", "small", "mini"));
  EXPECT_NEAR(models[0].tokens_per_second, 27.0, 0.1);  // 90 % of the bandwidth, of what it reads
  EXPECT_NEAR(models[2].tokens_per_second, 90.0, 0.1);
}

TEST(Recommendation, FitsTheMemoryWithRoomForTheCache) {
  EXPECT_THAT(names(recommend(hub::read_aliases(table), machine(9 * gigabyte, 1e12))),
              ElementsAre("small", "mini", "tiny"));
  EXPECT_TRUE(recommend(hub::read_aliases(table), machine(gigabyte / 2, 1e12)).empty());
}

TEST(Recommendation, OfASlowMachineIsWhatComesNearest) {
  EXPECT_THAT(names(recommend(hub::read_aliases(table), machine(64 * gigabyte, 1e9))),
              ElementsAre("mixture", "mini", "tiny"));
}

TEST(Recommendation, HasThreeModelsOfTheTableForAnOrdinaryMachine) {
  for (const double bandwidth : {10e9, 50e9, 3000e9}) {
    EXPECT_EQ(recommend(hub::aliases(), machine(16 * gigabyte, bandwidth)).size(), 3U) << bandwidth;
  }
}

TEST(Recommendation, NamesTheCommandTheSpeedAndTheDownload) {
  Machine one = machine(64 * gigabyte, 60e9);
  one.has = [](const std::string& name) { return name == "mini"; };
  const auto models = recommend(hub::read_aliases(table), one);
  const std::string text = described(models);
  EXPECT_THAT(text, HasSubstr("  inferno play mixture  about 27 tok/s, 20.0 GB to download\n"));
  EXPECT_THAT(text, HasSubstr("  inferno play mini     about 90 tok/s, 600.0 MB, on this machine\n"));
  EXPECT_THAT(described({}), HasSubstr("inferno play builtin"));
  const auto facts = nlohmann::json::parse(finding_of(models, one).facts);
  EXPECT_EQ(facts["recommended"][0]["command"], "inferno play mixture");
  EXPECT_EQ(facts["bandwidth"], 60e9);
}

}  // namespace
}  // namespace inferno::doctor
