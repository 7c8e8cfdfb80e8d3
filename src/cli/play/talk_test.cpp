#include "cli/play/talk.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno::play {
namespace {

Turn answered(std::string text, std::string finish_reason = "stop") {
  return {
      .question = {}, .answer = std::move(text), .reasoning = {}, .finish_reason = std::move(finish_reason)};
}

Talk two_turns() {
  Talk talk;
  talk.set_system("be brief");
  talk.ask("one");
  talk.answer(answered("eins"));
  talk.ask("two");
  talk.answer({.question = {}, .answer = "zwei", .reasoning = "hm", .finish_reason = "length"});
  return talk;
}

TEST(Talk, GivesMessagesWithTheOpenQuestionLast) {
  Talk talk = two_turns();
  talk.ask("three");
  EXPECT_EQ(
      talk.messages().dump(),
      R"([{"role":"system","content":"be brief"},{"role":"user","content":"one"},)"
      R"({"role":"assistant","content":"eins"},{"role":"user","content":"two"},)"
      R"({"role":"assistant","content":"zwei","reasoning_content":"hm"},{"role":"user","content":"three"}])");
}

TEST(Talk, TakesTurnsBack) {
  Talk talk = two_turns();
  EXPECT_EQ(talk.undo(), "two");
  EXPECT_EQ(talk.turns().size(), 1u);
  EXPECT_EQ(talk.undo(), "one");
  EXPECT_EQ(talk.undo(), std::nullopt);
  EXPECT_EQ(talk.system(), "be brief");
}

TEST(Talk, CompletesATextUntilTheModelEndsIt) {
  Talk talk;
  talk.ask("Once");
  EXPECT_EQ(talk.text(), "Once");
  talk.answer(answered(" upon", "length"));
  talk.ask(" a");
  EXPECT_EQ(talk.text(), "Once upon a");
  talk.answer(answered(" time.", "stop"));
  talk.ask("Then");
  EXPECT_EQ(talk.text(), "Then");
}

TEST(Talk, ComesBackFromAFile) {
  const Talk talk = two_turns();
  Talk opened;
  opened.open(talk.saved("a model"));
  EXPECT_EQ(opened.saved("a model"), talk.saved("a model"));
  EXPECT_EQ(opened.turns()[1].reasoning, "hm");
}

TEST(Talk, OpensWhatOthersWrote) {
  Talk talk;
  talk.open(Json::parse(R"({"messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},
                                         {"role":"assistant","content":"a"}]})"));
  EXPECT_EQ(talk.system(), "s");
  EXPECT_EQ(talk.turns().at(0).answer, "a");
}

TEST(Talk, RefusesWhatIsNoConversationAndStaysAsItWas) {
  Talk talk = two_turns();
  const Json before = talk.saved("m");
  for (const char* text :
       {"[]", "{}", R"({"messages":{}})", R"({"messages":[1]})",
        R"({"messages":[{"role":"assistant","content":"a"}]})",
        R"({"messages":[{"role":"user","content":7}]})", R"({"messages":[{"role":"user","content":"q"}]})",
        R"({"messages":[{"role":"tool","content":"q"}]})",
        R"({"messages":[{"role":"user","content":"q"},{"role":"user","content":"q"}]})"}) {
    EXPECT_THROW(talk.open(Json::parse(text)), Error) << text;
  }
  EXPECT_EQ(talk.saved("m"), before);
}

}  // namespace
}  // namespace inferno::play
