#include "cli/play/transcript.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno::play {
namespace {

Turn answered(std::string text, std::string finish_reason = "stop") {
  return {
      .question = {}, .answer = std::move(text), .reasoning = {}, .finish_reason = std::move(finish_reason)};
}

Transcript two_turns() {
  Transcript transcript;
  transcript.set_system("be brief");
  transcript.ask("one");
  transcript.answer(answered("eins"));
  transcript.ask("two");
  transcript.answer({.question = {}, .answer = "zwei", .reasoning = "hm", .finish_reason = "length"});
  return transcript;
}

TEST(Transcript, GivesMessagesWithTheOpenQuestionLast) {
  Transcript transcript = two_turns();
  transcript.ask("three");
  EXPECT_EQ(
      transcript.messages().dump(),
      R"([{"role":"system","content":"be brief"},{"role":"user","content":"one"},)"
      R"({"role":"assistant","content":"eins"},{"role":"user","content":"two"},)"
      R"({"role":"assistant","content":"zwei","reasoning_content":"hm"},{"role":"user","content":"three"}])");
}

TEST(Transcript, TakesTurnsBack) {
  Transcript transcript = two_turns();
  EXPECT_EQ(transcript.undo(), "two");
  EXPECT_EQ(transcript.turns().size(), 1u);
  EXPECT_EQ(transcript.undo(), "one");
  EXPECT_EQ(transcript.undo(), std::nullopt);
  EXPECT_EQ(transcript.system(), "be brief");
}

TEST(Transcript, CompletesATextUntilTheModelEndsIt) {
  Transcript transcript;
  transcript.ask("Once");
  EXPECT_EQ(transcript.text(), "Once");
  transcript.answer(answered(" upon", "length"));
  transcript.ask(" a");
  EXPECT_EQ(transcript.text(), "Once upon a");
  transcript.answer(answered(" time.", "stop"));
  transcript.ask("Then");
  EXPECT_EQ(transcript.text(), "Then");
}

TEST(Transcript, ComesBackFromAFile) {
  const Transcript transcript = two_turns();
  Transcript opened;
  opened.open(transcript.saved("a model"));
  EXPECT_EQ(opened.saved("a model"), transcript.saved("a model"));
  EXPECT_EQ(opened.turns()[1].reasoning, "hm");
}

TEST(Transcript, OpensWhatOthersWrote) {
  Transcript transcript;
  transcript.open(Json::parse(R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},
                                         {"role":"assistant","content":"a"}]})"));
  EXPECT_EQ(transcript.system(), "s");
  EXPECT_EQ(transcript.turns().at(0).answer, "a");
}

TEST(Transcript, RefusesWhatIsNoConversationAndStaysAsItWas) {
  Transcript transcript = two_turns();
  const Json before = transcript.saved("m");
  for (const char* text :
       {"[]", "{}", R"({"messages":{}})", R"({"messages":[1]})",
        R"({"messages":[{"role":"assistant","content":"a"}]})",
        R"({"messages":[{"role":"user","content":7}]})", R"({"messages":[{"role":"user","content":"q"}]})",
        R"({"messages":[{"role":"tool","content":"q"}]})",
        R"({"messages":[{"role":"user","content":"q"},{"role":"user","content":"q"}]})"}) {
    EXPECT_THROW(transcript.open(Json::parse(text)), Error) << text;
  }
  EXPECT_EQ(transcript.saved("m"), before);
}

TEST(Transcript, DropsTheOldestTurnsForTheModelAlone) {
  Transcript transcript;
  transcript.set_system("Be brief.");
  for (const char* question : {"one", "two", "three"}) {
    transcript.ask(question);
    transcript.answer({.answer = "yes", .finish_reason = "stop"});
  }
  EXPECT_TRUE(transcript.drop_oldest());
  EXPECT_EQ(transcript.messages().at(0).at("content"), "Be brief.");
  EXPECT_EQ(transcript.messages().at(1).at("content"), "two");
  EXPECT_EQ(transcript.saved("m").at("messages").at(0).at("content"), "one");
  EXPECT_TRUE(transcript.drop_oldest());
  EXPECT_FALSE(transcript.drop_oldest()) << "the last turn stays";
  transcript.undo();
  transcript.undo();
  EXPECT_LE(transcript.dropped(), transcript.turns().size());
  transcript.clear();
  EXPECT_EQ(transcript.dropped(), 0u);
}

}  // namespace
}  // namespace inferno::play
