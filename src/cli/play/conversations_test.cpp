#include "cli/play/conversations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>

#include "base/file.h"
#include "support/temporary_directory.h"

namespace inferno::play {
namespace {

namespace fs = std::filesystem;

Transcript talk(const std::string& question) {
  Transcript transcript;
  transcript.ask(question);
  transcript.answer({.answer = "Yes.", .finish_reason = "stop"});
  return transcript;
}

TEST(Conversations, AreKeptForTheirOwnerAndListedNewestFirst) {
  const TemporaryDirectory folder;
  Conversations kept(folder.path() / "state/conversations");
  EXPECT_TRUE(kept.keep(talk("first question"), "m"));
  EXPECT_TRUE(kept.keep(talk("first question, again"), "m"));  // the same conversation
  kept.begin();
  EXPECT_TRUE(kept.keep(talk("second question " + std::string(100, 'x')), "m"));
  std::ofstream(folder.path() / "state/conversations/99999999-broken.json") << "{";
  const auto all = kept.newest(10);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_THAT(all[0].title, testing::StartsWith("second question xxx"));
  EXPECT_LT(all[0].title.size(), 70u);
  EXPECT_EQ(all[1].title, "first question, again");
  EXPECT_EQ(all[1].turns, 1u);
  EXPECT_THAT(all[1].begun, testing::MatchesRegex("20[0-9][0-9]-[01][0-9]-[0-3][0-9] [0-2][0-9]:[0-5][0-9]"));
  EXPECT_EQ(fs::status(all[0].file).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  EXPECT_EQ(fs::status(all[0].file.parent_path()).permissions(), fs::perms::owner_all);
}

TEST(Conversations, AreNotKeptWithoutAFolderOrWhereNothingCanBeWritten) {
  EXPECT_TRUE(Conversations("").keep(talk("q"), "m"));
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "file") << "x";
  EXPECT_FALSE(Conversations(folder.path() / "file/conversations").keep(talk("q"), "m"));
  EXPECT_TRUE(Conversations(folder.path() / "none").newest(5).empty());
}

TEST(Conversations, MayBeSavedOverConversationsOnly) {
  const TemporaryDirectory folder;
  const auto file = [&](const std::string& name) { return folder.path() / name; };
  save_conversation(talk("q"), "m", file("talk.json"));
  save_conversation(talk("q"), "m", file("talk.md"));
  for (const char* name : {"talk.json", "talk.md", "none", "."}) EXPECT_TRUE(may_replace(file(name))) << name;
  write_file(file("empty"), "");
  EXPECT_TRUE(may_replace(file("empty")));
  write_file(file("thesis.md"), "# My thesis\n");
  write_file(file("package.json"), R"({"model": "m", "system": "x"})");
  write_file(file("request.json"), R"({"messages": [{"role": "user", "content": "q"}]})");
  for (const char* name : {"thesis.md", "package.json", "request.json"})
    EXPECT_FALSE(may_replace(file(name))) << name;
}

TEST(Conversations, AreForeignInMarkdownIfAnythingElseIsInThem) {
  const TemporaryDirectory folder;
  const auto may_replace_text = [&](const std::string& text) {
    return may_replace(folder.write("talk.md", text));
  };
  Transcript transcript = talk("Show code.\n\nAll of it.");
  transcript.set_system("Be brief.\n\nAlways.");
  transcript.ask("");
  transcript.answer({.answer = "```sh\n# a comment\n```", .finish_reason = "stop"});
  const std::string saved = as_markdown(transcript, "org/m:Q4");
  EXPECT_TRUE(may_replace_text(saved));
  EXPECT_TRUE(may_replace_text(as_markdown(Transcript(), "m")));
  for (const char* added : {"## Notes\n", "\n## Notes\n\nmilk\n", "\n# Notes\n", "milk", "\n## You\n\nmilk\n",
                            "```\n## Notes\n"}) {
    EXPECT_FALSE(may_replace_text(saved + added)) << added;
  }
  for (const char* notes : {"# Conversation with Anna", "# Conversation with Anna\n\nShe wants milk.\n",
                            "# Conversation with Anna\n\n## Milk\n\nfor her\n",
                            "# Conversation with Anna\n\n## You\n\nmilk?\n\n## Berta\n\nNo.\n"}) {
    EXPECT_FALSE(may_replace_text(notes)) << notes;
  }
}

TEST(Conversations, AreForeignInJsonIfAnythingElseIsInThem) {
  const TemporaryDirectory folder;
  const fs::path file = folder.path() / "talk.json";
  Transcript transcript;
  transcript.ask("q");
  transcript.answer({.answer = "a",
                     .reasoning = "r",
                     .tool_calls = Json::parse(R"([{"name": "f", "arguments": {}}])"),
                     .finish_reason = "length"});
  save_conversation(transcript, "m", file);
  EXPECT_TRUE(may_replace(file));
  const Json saved = Json::parse(read_file(file, 10000));
  Json tagged = saved, rated = saved, without_model = saved;
  tagged["tags"] = {"milk"};
  rated["messages"][1]["rating"] = 5;
  without_model["model"] = nullptr;
  for (const Json& changed : {tagged, rated, without_model}) {
    write_file(file, changed.dump());
    EXPECT_FALSE(may_replace(file)) << changed.dump();
  }
}

TEST(Conversations, AreReplacedUntilSomethingElseChangesThem) {
  const TemporaryDirectory folder;
  const fs::path file = folder.path() / "talk.md";
  const auto save = [&](SavedFiles& files) {
    save_conversation(talk("Is it?\n\n## Really?"), "m", file);
    files.remember(file);
  };
  SavedFiles files;
  EXPECT_EQ(files.objection(file), "");
  save(files);
  fs::create_symlink("talk.md", folder.path() / "link");
  EXPECT_EQ(files.objection(file), "");
  EXPECT_EQ(files.objection(folder.path() / "link"), "");
  EXPECT_EQ(SavedFiles().objection(file), "the file exists and is not a conversation");  // it has a heading
  save_conversation(talk("q"), "m", file);
  EXPECT_EQ(files.objection(file), "the file was changed since it was saved");
  save(files);
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::microseconds(1));
  EXPECT_EQ(files.objection(file), "the file was changed since it was saved");
  fs::remove(file);
  EXPECT_EQ(files.objection(file), "");
}

TEST(Conversations, BecomeMarkdown) {
  Transcript transcript = talk("Is it **so**?");
  transcript.set_system("Be brief.");
  EXPECT_EQ(as_markdown(transcript, "m"),
            "# Conversation with m\n\n**System:** Be brief.\n\n## You\n\nIs it **so**?\n\n## m\n\nYes.\n");
}

}  // namespace
}  // namespace inferno::play
