#include "cli/play/entry_completion.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace inferno::play {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class EntryCompletion : public ::testing::Test {
 protected:
  EntryCompletion() {
    for (const char* name : {"talk.json", "tale.md", ".hidden", "with space"})
      write_file(folder_.path() / name, "x");
    std::filesystem::create_directory(folder_.path() / "texts");
  }

  // Each candidate with its ending, as the whole entry would read; "tab" where nothing is completed.
  std::vector<std::string> completed(const std::string& text) const {
    const CompletionSources sources = {
        .models = [] { return std::vector<std::string>{"org/model", "org/other", "builtin"}; },
        .settings = [] { return std::vector<std::string>{"temperature", "think", "top_k"}; },
        .path_of = [this](const std::string& typed) { return folder_.path() / typed; }};
    const auto completion = complete_entry(text, sources);
    if (!completion) return {"tab"};
    std::vector<std::string> found;
    for (const auto& candidate : completion->candidates)
      found.push_back(text.substr(0, completion->begin) + candidate.text + candidate.ending);
    return found;
  }

  const TemporaryDirectory folder_;
};

TEST_F(EntryCompletion, KnowsTheCommands) {
  EXPECT_THAT(completed("/s"), ElementsAre("/save ", "/save! ", "/set ", "/show", "/stats", "/system "));
  EXPECT_THAT(completed("/x"), IsEmpty());
  EXPECT_THAT(completed("/show "), IsEmpty());
}

TEST_F(EntryCompletion, KnowsWhatACommandTakes) {
  EXPECT_THAT(completed("/load org/"), ElementsAre("/load org/model", "/load org/other"));
  EXPECT_THAT(completed("/load ./te"), ElementsAre("/load ./texts/"));
  EXPECT_THAT(completed("/set t"), ElementsAre("/set temperature ", "/set think ", "/set top_k "));
  EXPECT_THAT(completed("/set think o"), ElementsAre("/set think off", "/set think on"));
  EXPECT_THAT(completed("/open ./ta"), ElementsAre("/open ./tale.md", "/open ./talk.json"));
  for (const std::string save : {"/save ", "/save! "}) {  // a file that exists would be replaced
    EXPECT_THAT(completed(save + "./ta"), IsEmpty());
    EXPECT_THAT(completed(save + "./te"), ElementsAre(save + "./texts/"));
  }
  EXPECT_THAT(completed("/open ./te"), ElementsAre("/open ./texts/"));
  EXPECT_THAT(completed("/open ./w"), ElementsAre("/open ./with space"));
  EXPECT_THAT(completed("/open ./"),
              ElementsAre("/open ./tale.md", "/open ./talk.json", "/open ./texts/", "/open ./with space"));
  EXPECT_THAT(completed("/open ./.h"), ElementsAre("/open ./.hidden"));
}

TEST_F(EntryCompletion, CompletesFilesBehindAnAtSign) {
  EXPECT_THAT(completed("read @./ta"), ElementsAre("read @./tale.md ", "read @./talk.json "));
  EXPECT_THAT(completed("@./w"), ElementsAre("@\"./with space\" "));
  EXPECT_THAT(completed("@\"./te"), ElementsAre("@\"./texts/"));
  EXPECT_THAT(completed("/edit @./te"), ElementsAre("/edit @./texts/"));
}

TEST_F(EntryCompletion, LeavesTabsInTexts) {
  for (const char* text : {"", "some text", "a@b", "@\"done\" ", "/system be"})
    EXPECT_THAT(completed(text), ElementsAre("tab")) << text;
}

}  // namespace
}  // namespace inferno::play
