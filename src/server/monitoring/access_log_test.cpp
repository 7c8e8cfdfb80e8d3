#include "server/monitoring/access_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "chat/json.h"

namespace inferno::server {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Scene {
  std::vector<std::string> lines;
  AccessLog log(LogFormat format, LogLevel level = LogLevel::info) {
    return AccessLog({.format = format,
                      .level = level,
                      .write = [this](std::string_view line) { lines.emplace_back(line); },
                      .clock =
                          [] {
                            return std::chrono::system_clock::time_point(
                                std::chrono::milliseconds(1'763'316'000'042));
                          }});
  }
};

AccessLine example() {
  return {.id = "req_1",
          .method = "POST",
          .route = "/v1/chat/completions",
          .peer = "127.0.0.1",
          .key = 2,
          .status = 200,
          .prompt_tokens = 12,
          .cached_tokens = 8,
          .generated_tokens = 5,
          .queue_seconds = 0.0012,
          .first_token_seconds = 0.0234,
          .total_seconds = 0.12};
}

TEST(AccessLog, WritesOneLineOfText) {
  Scene scene;
  scene.log(LogFormat::text).request(example());
  EXPECT_THAT(
      scene.lines,
      ElementsAre("2025-11-16T18:00:00.042Z 200 POST /v1/chat/completions req_1 key=2 prompt=12 cached=8 "
                  "generated=5 queue=1.2ms first=23.4ms total=120.0ms peer=127.0.0.1\n"));
}

TEST(AccessLog, WritesOneJsonObjectPerLine) {
  Scene scene;
  AccessLine line = example();
  line.was_cancelled = true;
  scene.log(LogFormat::json).request(line);
  const Json json = Json::parse(scene.lines.at(0));
  EXPECT_EQ(json.at("time"), "2025-11-16T18:00:00.042Z");
  EXPECT_EQ(json.at("id"), "req_1");
  EXPECT_EQ(json.at("key"), 2);
  EXPECT_EQ(json.at("route"), "/v1/chat/completions");
  EXPECT_EQ(json.at("status"), 200);
  EXPECT_EQ(json.at("prompt_tokens"), 12);
  EXPECT_EQ(json.at("generated_tokens"), 5);
  EXPECT_DOUBLE_EQ(json.at("queue_ms"), 1.2);
  EXPECT_DOUBLE_EQ(json.at("first_token_ms"), 23.4);
  EXPECT_EQ(json.at("disconnected"), true);
}

TEST(AccessLog, EscapesWhatAClientSent) {
  for (const LogFormat format : {LogFormat::text, LogFormat::json}) {
    Scene scene;
    AccessLine line = example();
    line.method = "GET\r\n2025 200 forged \x1b[31m\xff\xe2\x80\xae\"\\";
    const AccessLog log = scene.log(format);
    log.request(line);
    log.message(LogLevel::error, line.method);
    ASSERT_EQ(scene.lines.size(), 2U);
    for (const std::string& written : scene.lines) {
      EXPECT_EQ(written.find('\n'), written.size() - 1);
      for (const char letter : written.substr(0, written.size() - 1)) {
        EXPECT_GE(static_cast<unsigned char>(letter), 0x20) << written;
        EXPECT_LT(static_cast<unsigned char>(letter), 0x7F) << written;
      }
      EXPECT_TRUE(format == LogFormat::text || Json::accept(written)) << written;
    }
  }
}

TEST(AccessLog, QuotesValuesWithSpacesSoThatColumnsStayColumns) {
  Scene scene;
  AccessLine line = example();
  line.method = "GET 200";
  line.peer = "";
  scene.log(LogFormat::text).request(line);
  EXPECT_THAT(scene.lines.at(0), HasSubstr(" 200 \"GET 200\" /v1"));
  EXPECT_THAT(scene.lines.at(0), HasSubstr("peer=\"\"\n"));
}

TEST(AccessLog, KeepsMessagesWhole) {
  Scene scene;
  scene.log(LogFormat::text).message(LogLevel::warning, std::string(3000, 'x') + "\nend");
  EXPECT_THAT(scene.lines.at(0), HasSubstr(" warning: xxx"));
  EXPECT_THAT(scene.lines.at(0), HasSubstr("x\\x0aend\n"));
}

TEST(AccessLog, WritesOnlyItsLevelAndAbove) {
  Scene scene;
  const AccessLog warnings = scene.log(LogFormat::text, LogLevel::warning);
  warnings.request(example());
  warnings.message(LogLevel::info, "loaded");
  EXPECT_THAT(scene.lines, IsEmpty());
  warnings.message(LogLevel::error, "device lost");
  EXPECT_THAT(scene.lines, ElementsAre(HasSubstr("error: device lost")));

  const AccessLog silent = scene.log(LogFormat::json, LogLevel::off);
  silent.message(LogLevel::error, "device lost");
  AccessLog({}).request(example());
  EXPECT_EQ(scene.lines.size(), 1U);
}

}  // namespace
}  // namespace inferno::server
