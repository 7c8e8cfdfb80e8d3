#include "server/monitoring/load_report.h"

#include <gtest/gtest.h>

#include "chat/json.h"

namespace inferno::server {
namespace {

EngineStats busy() {
  EngineStats stats;
  stats.running = 3;
  stats.waiting = 2;
  stats.blocks = 8;
  stats.free_blocks = 6;
  return stats;
}

TEST(ServerLoad, AsText) {
  EXPECT_EQ(load_report("TEXT", busy()),
            "TEXT named_metrics.kv_cache_usage_perc=0.2500, named_metrics.num_requests_waiting=2, "
            "named_metrics.num_requests_running=3");
}

TEST(ServerLoad, AsJson) {
  const auto report = load_report("JSON", busy());
  ASSERT_TRUE(report && report->starts_with("JSON "));
  EXPECT_EQ(Json::parse(report->substr(5)), Json::parse(R"({"named_metrics": {"kv_cache_usage_perc": 0.25,
            "num_requests_waiting": 2, "num_requests_running": 3}})"));
}

TEST(ServerLoad, OfAServerThatIsStillLoading) {
  EXPECT_EQ(load_report("TEXT", {}),
            "TEXT named_metrics.kv_cache_usage_perc=0.0000, named_metrics.num_requests_waiting=0, "
            "named_metrics.num_requests_running=0");
}

TEST(ServerLoad, InNoOtherFormat) {
  EXPECT_FALSE(load_report("BIN", busy()));
  EXPECT_FALSE(load_report("", busy()));
}

}  // namespace
}  // namespace inferno::server
