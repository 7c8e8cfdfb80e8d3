#include "hub/settings.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/error.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using Values = std::map<std::string, std::string, std::less<>>;

HubSettings settings_of(const Values& values) {
  return hub_settings({.get =
                           [&](std::string_view name) {
                             const auto found = values.find(name);
                             return found == values.end() ? std::nullopt : std::optional(found->second);
                           },
                       .expanded =
                           [](std::string_view path) {
                             return path.starts_with("~") ? "/nowhere" + std::string(path.substr(1))
                                                          : std::string(path);
                           },
                       .cache = fs::path("/cache")});
}

fs::path token_file(const std::string& content) {
  const fs::path file = fs::path(testing::TempDir()) / "token";
  std::ofstream(file) << content;
  return file;
}

TEST(HubSettings, UseHuggingFaceAnonymouslyByDefault) {
  const HubSettings settings = settings_of({});
  EXPECT_EQ(settings.endpoint, "https://huggingface.co");
  EXPECT_EQ(settings.token, "");
  EXPECT_EQ(settings.token_file, "/nowhere/.cache/huggingface/token");
  EXPECT_FALSE(settings.is_offline());
}

TEST(HubSettings, DropTheSlashAtTheEndOfAMirror) {
  EXPECT_EQ(settings_of({{"HF_ENDPOINT", "https://mirror.example/hub//"}}).endpoint,
            "https://mirror.example/hub");
}

TEST(HubSettings, PreferTheVariableOverTheTokenFile) {
  const fs::path file = token_file("hf_of_file\n");
  const HubSettings both = settings_of({{"HF_TOKEN_PATH", file}, {"HF_TOKEN", " hf_of_variable\n"}});
  EXPECT_EQ(both.token, "hf_of_variable");
  EXPECT_EQ(both.token_source, "HF_TOKEN");
  const HubSettings one = settings_of({{"HF_TOKEN_PATH", file}});
  EXPECT_EQ(one.token, "hf_of_file");
  EXPECT_EQ(one.token_source, file.string());
}

TEST(HubSettings, SendNoImplicitTokenIfDisabled) {
  EXPECT_EQ(settings_of({{"HF_TOKEN", "hf_x"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "YES"}}).token, "");
}

TEST(HubSettings, RefuseATokenWithALineBreakAndDoNotShowIt) {
  try {
    settings_of({{"HF_TOKEN", "hf_secret\r\nX-Evil: 1"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    EXPECT_EQ(std::string(error.what()).find("secret"), std::string::npos);
  }
}

TEST(HubSettings, AreOfflineForEveryTrueValue) {
  for (const char* yes : {"1", "ON", "Yes", "true"})
    EXPECT_TRUE(settings_of({{"HF_HUB_OFFLINE", yes}}).is_offline());
  for (const char* no : {"0", "off", "no"}) EXPECT_FALSE(settings_of({{"HF_HUB_OFFLINE", no}}).is_offline());
  EXPECT_EQ(settings_of({{"TRANSFORMERS_OFFLINE", "1"}}).offline_reason, "TRANSFORMERS_OFFLINE=1");
}

TEST(HubSettings, RefuseInvalidTimes) {
  for (const char* text : {"0", "-1", "nan", "ten", "1s"}) {
    EXPECT_THROW(settings_of({{"HF_HUB_DOWNLOAD_TIMEOUT", text}}), Error) << text;
  }
  EXPECT_EQ(settings_of({{"HF_HUB_DOWNLOAD_TIMEOUT", "2.5"}}).stall_timeout.count(), 2500);
}

}  // namespace
}  // namespace inferno::hub
