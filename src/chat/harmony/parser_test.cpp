#include "chat/harmony/parser.h"

#include <gtest/gtest.h>

#include <random>

#include "chat/conversation.h"
#include "chat/vocabulary_scene.h"
#include "support/replies.h"

namespace inferno::harmony {
namespace {

using testing::Call;
using testing::Reply;

const Tokenizer& vocabulary() {
  static const std::unique_ptr<Tokenizer> made_up = harmony_vocabulary();
  return *made_up;
}

Conversation weather() {
  Conversation conversation;
  conversation.messages = parse_json(R"([{"role": "user", "content": "Weather?"}])", "messages");
  conversation.tools = parse_json(R"([{"type": "function", "function": {"name": "get_weather"}}])", "tools");
  return conversation;
}

Reply reply_to(std::span<const TokenId> tokens) {
  const Conversation conversation = weather();
  return testing::parse(*make_parser(vocabulary(), {.conversation = &conversation, .opening = {}}), tokens);
}

Reply reply_to(std::string_view text) {
  return reply_to(vocabulary().encode_prompt(text));
}

const std::string no_header = "the model wrote a message without a valid header";
const std::string inside = "the model began a message inside another message";

TEST(HarmonyParser, SendsAnalysisToReasoningAndFinalToContent) {
  EXPECT_EQ(reply_to("<|channel|>analysis<|message|>Easy.<|end|><|start|>assistant<|channel|>final<|message|>"
                     "2 + 2 = 4.<|return|>"),
            (Reply{"2 + 2 = 4.", "Easy.", {}, {}}));
}

TEST(HarmonyParser, LeavesOtherControlTokensOutOfTheText) {
  const auto tokenizer = vocabulary_with({"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|other|>"});
  const Reply reply =
      testing::parse(*make_parser(*tokenizer, {.conversation = nullptr, .opening = {}}),
                     tokenizer->encode_prompt("<|channel|>final<|message|>a<|other|>b<|end|>"));
  EXPECT_EQ(reply, (Reply{"ab", "", {}, {"the model wrote the control token <|other|> in its reply"}}));
}

TEST(HarmonyParser, MakesCommentaryWithARecipientAToolCall) {
  const Reply expected{"", "", {{"get_weather", R"({"a": 1})"}}, {}};
  for (const char* header :
       {" to=functions.get_weather<|channel|>commentary json",
        " to=functions.get_weather<|channel|>commentary <|constrain|>json",
        " to=functions.get_weather<|channel|>commentary<|constrain|>json",
        "<|channel|>commentary to=functions.get_weather <|constrain|>json",
        "<|channel|>commentary to=functions.get_weather<|constrain|>json",
        "<|channel|>commentary to=functions.get_weather code", "<|channel|>commentary to=get_weather",
        "<|channel|>commentary functions.get_weather json", "<|channel|>commentary get_weather",
        "<|channel|>commentary to= functions.get_weather json",
        "<|channel|>analysis to=functions.get_weather",
        "assistant to=functions.get_weather<|channel|>commentary json",
        "<|start|>assistant to=functions.get_weather<|channel|>commentary json",
        " to=functions.get_weather"}) {
    EXPECT_EQ(reply_to(header + std::string(R"(<|message|>{"a": 1}<|call|>)")), expected) << header;
  }
}

TEST(HarmonyParser, ShowsAPreambleAndSeveralCalls) {
  EXPECT_EQ(
      reply_to("<|channel|>commentary<|message|>Let me look.<|end|>"
               "<|start|>assistant<|channel|>commentary to=functions.get_weather json<|message|>{}<|end|>"
               "<|start|>assistant<|channel|>commentary to=functions.other json<|message|>[1]<|call|>"),
      (Reply{"Let me look.",
             "",
             {{"get_weather", "{}"}, {"other", "[1]"}},
             {"the model called \"other\", which was not offered"}}));
}

TEST(HarmonyParser, GivesACallWithoutArgumentsAnEmptyObject) {
  EXPECT_EQ(reply_to("<|channel|>commentary to=functions.get_weather json<|message|><|call|>"),
            (Reply{"", "", {{"get_weather", "{}"}}, {}}));
  EXPECT_EQ(reply_to("<|channel|>commentary to=functions.get_weather json<|message|>"),
            (Reply{"", "", {{"get_weather", ""}}, {}}));  // unfinished: no arguments are made up
}

TEST(HarmonyParser, KeepsTheTextOfMessagesWithoutAHeader) {
  EXPECT_EQ(reply_to("Hello there, how are you?<|return|>"),
            (Reply{"Hello there, how are you?", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("Hello"), (Reply{"Hello", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("assistant is what I am"), (Reply{"assistant is what I am", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("I must refuse<|end|><|start|>assistant<|channel|>final<|message|>No.<|return|>"),
            (Reply{"I must refuseNo.", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("line\nbreak"), (Reply{"line\nbreak", "", {}, {no_header}}));
  const std::string long_word(1000, 'x');
  EXPECT_EQ(reply_to(long_word), (Reply{long_word, "", {}, {no_header}}));
}

TEST(HarmonyParser, SendsAHeaderWithoutMessageTokenToItsChannel) {
  EXPECT_EQ(reply_to("<|channel|>analysis I must "
                     "refuse<|end|><|start|>assistant<|channel|>final<|message|>No.<|return|>"),
            (Reply{"No.", "I must refuse", {}, {no_header}}));
  EXPECT_EQ(reply_to("<|channel|>final Yes, of course, that is so.<|return|>"),
            (Reply{"Yes, of course, that is so.", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("<|channel|>commentary to=functions.get_weather {}<|call|>"),
            (Reply{"to=functions.get_weather {}", "", {}, {no_header}}));
}

TEST(HarmonyParser, KeepsTextInsideAHeader) {
  EXPECT_EQ(reply_to("<|channel|>final Well, yes<|message|>I do.<|return|>"),
            (Reply{"Well, yesI do.", "", {}, {"the model wrote text into a message header"}}));
  EXPECT_EQ(reply_to("<|channel|>analysis Hm!<|message|>I see.<|end|>"),
            (Reply{"Hm!", "I see.", {}, {"the model wrote text into a message header"}}));
}

TEST(HarmonyParser, KeepsAWordBeforeAMessage) {
  EXPECT_EQ(reply_to("hello<|message|> there<|end|>").content, "hello there");
}

TEST(HarmonyParser, WarnsAboutAnEndlessHeaderWithoutText) {
  EXPECT_EQ(reply_to("<|channel|>final"), (Reply{"", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("<|channel|>fin"), (Reply{"fin", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("<|end|><|start|>assistant"), (Reply{"", "", {}, {no_header}}));
  EXPECT_EQ(reply_to("<|return|>"), Reply{});
  EXPECT_EQ(reply_to(""), Reply{});
}

TEST(HarmonyParser, ToleratesMissingAndRepeatedControlTokens) {
  EXPECT_EQ(
      reply_to("<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>b<|return|>"),
      (Reply{"b", "a", {}, {inside}}));
  EXPECT_EQ(reply_to("<|channel|>analysis<|message|>a<|channel|>final<|message|>b<|return|>"),
            (Reply{"b", "a", {}, {inside}}));
  EXPECT_EQ(reply_to("<|channel|>analysis<|message|>a<|end|>assistant<|channel|>final<|message|>b<|return|>"),
            (Reply{"b", "a", {}, {}}));
  EXPECT_EQ(reply_to("<|channel|>final<|message|>a<|message|>b<|constrain|>c<|return|>"),
            (Reply{"abc",
                   "",
                   {},
                   {"the model wrote <|message|> inside a message",
                    "the model wrote <|constrain|> inside a message"}}));
  EXPECT_EQ(reply_to("<|channel|>analysis<|channel|>final<|message|>b<|return|>"), (Reply{"b", "", {}, {}}));
  EXPECT_EQ(reply_to("<|start|><|channel|>final<|message|>b<|end|>"), (Reply{"b", "", {}, {}}));
}

TEST(HarmonyParser, ShowsMessagesOfUnknownAuthorsAndChannelsAsContent) {
  EXPECT_EQ(reply_to("<|channel|>banana<|message|>yellow<|end|>"),
            (Reply{"yellow", "", {}, {"the model wrote to the channel \"banana\", which does not exist"}}));
  EXPECT_EQ(reply_to("<|message|>bare<|end|>"),
            (Reply{"bare", "", {}, {"the model wrote a message without a channel"}}));
  EXPECT_EQ(reply_to("<|channel|>commentary to=functions.<|message|>{}<|call|>"),
            (Reply{"{}", "", {}, {"the model called a function without naming it"}}));
  EXPECT_EQ(reply_to("<|start|>user<|message|>me<|end|>"),
            (Reply{"me", "", {}, {"the model wrote a message as \"user\""}}));
  EXPECT_EQ(reply_to("<|start|>functions.f to=assistant<|channel|>commentary<|message|>21<|end|>"),
            (Reply{"21", "", {}, {"the model wrote a message as \"functions.f\""}}));
}

TEST(HarmonyParser, ReplacesInvalidUtf8AndHoldsBackIncompleteCharacters) {
  std::vector<TokenId> tokens = vocabulary().encode_prompt("<|channel|>final<|message|>");
  const std::vector<TokenId> umlaut = vocabulary().encode("ü");
  ASSERT_EQ(umlaut.size(), 2u);
  const auto parser = make_parser(vocabulary(), {});
  for (const TokenId token : tokens) parser->push(token);
  EXPECT_TRUE(parser->push(umlaut[0]).empty());
  Reply reply;
  testing::add(reply, parser->push(umlaut[1]));
  EXPECT_EQ(reply.content, "ü");
  tokens.push_back(umlaut[0]);
  EXPECT_EQ(reply_to(tokens).content, "\xEF\xBF\xBD");
}

TEST(HarmonyParser, ReturnsValidUtf8NamesFromInvalidHeaders) {
  std::vector<TokenId> tokens = vocabulary().encode_prompt("<|channel|>commentary to=functions.");
  tokens.push_back(vocabulary().encode("ü")[0]);  // half a character
  for (const TokenId token : vocabulary().encode_prompt("<|message|>{}<|call|>")) tokens.push_back(token);
  EXPECT_EQ(reply_to(tokens).calls, (std::vector<Call>{{"\xEF\xBF\xBD", "{}"}}));
}

TEST(HarmonyParser, SurvivesTokensOutsideTheVocabulary) {
  const TokenId outside = vocabulary().size();
  EXPECT_EQ(reply_to(std::vector<TokenId>{-1, outside}).warnings.size(), 2u);
}

TEST(HarmonyParser, ContinuesThePromptsHeader) {
  const auto reply_behind = [](std::string_view opening, std::string_view text) {
    const auto parser =
        make_parser(vocabulary(), {.conversation = nullptr, .opening = vocabulary().encode_prompt(opening)});
    return testing::parse(*parser, vocabulary().encode_prompt(text));
  };
  EXPECT_EQ(reply_behind("assistant", "<|channel|>final<|message|>x<|return|>"), (Reply{"x", "", {}, {}}));
  EXPECT_EQ(reply_behind("assistant<|channel|>analysis<|message|>", "x<|end|>"), (Reply{"", "x", {}, {}}));
  EXPECT_EQ(reply_behind("assistant<|channel|>final<|message|>So ", "x<|end|>"), (Reply{"x", "", {}, {}}));
  EXPECT_EQ(reply_behind("user<|message|>x<|end|>", "<|start|>assistant<|channel|>final<|message|>y<|end|>"),
            (Reply{"y", "", {}, {}}));
  EXPECT_EQ(reply_behind("assistant to=functions.f<|channel|>commentary json<|message|>", "{}<|call|>"),
            (Reply{"", "", {{"f", "{}"}}, {}}));
}

TEST(HarmonyParser, DoesNotDependOnHowTextIsCutIntoTokens) {
  // "hello" is one token or five, "hell" and "he" are tokens too.
  for (const std::string_view text :
       {"<|channel|>final<|message|>hello hello<|return|>", "hello hello <|end|> hello",
        "<|channel|>analysis hello hello hello hello hello<|end|>",
        "<|start|>hello to=functions.hello<|channel|>hello hello<|message|>hello<|call|>"}) {
    const Reply whole = reply_to(text);
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
      // A split inside a control token would make it ordinary text.
      const std::size_t open = text.substr(0, cut).rfind('<');
      const std::size_t close = text.find("|>", open == std::string_view::npos ? 0 : open);
      if (open != std::string_view::npos && close != std::string_view::npos && cut < close + 2) continue;
      std::vector<TokenId> tokens = vocabulary().encode_prompt(text.substr(0, cut));
      const std::vector<TokenId> rest = vocabulary().encode_prompt(text.substr(cut));
      tokens.insert(tokens.end(), rest.begin(), rest.end());
      EXPECT_EQ(reply_to(tokens), whole) << text << " cut at " << cut;
    }
  }
}

TEST(HarmonyParser, LosesNoTextOfAnyMixOfTokens) {
  const std::vector<std::string> pieces = {"<|start|>",
                                           "<|end|>",
                                           "<|message|>",
                                           "<|channel|>",
                                           "<|constrain|>",
                                           "<|return|>",
                                           "<|call|>",
                                           "analysis",
                                           "final",
                                           "commentary",
                                           "assistant",
                                           " to=functions.get_weather",
                                           " to=",
                                           " json",
                                           "hello",
                                           " hello",
                                           "\n",
                                           "ü"};
  std::mt19937 random(5);
  for (int round = 0; round < 1000; ++round) {
    std::vector<TokenId> tokens;
    std::vector<std::string> bodies;
    bool in_body = false;
    for (std::size_t n = random() % 16; n > 0; --n) {
      const std::string& piece = pieces[random() % pieces.size()];
      const bool control = piece.starts_with("<|");
      if (piece == "<|message|>") bodies.emplace_back();
      if (control) in_body = piece == "<|message|>";
      if (!control && in_body) bodies.back() += piece;
      for (const TokenId token : vocabulary().encode_prompt(piece)) tokens.push_back(token);
    }
    const Reply reply = reply_to(tokens);
    std::string all = reply.content + "|" + reply.reasoning;
    for (const Call& call : reply.calls) all += "|" + call.arguments;
    for (const std::string& body : bodies) EXPECT_NE(all.find(body), std::string::npos) << reply;
    // The same text in the fewest tokens.
    EXPECT_EQ(reply_to(vocabulary().decode(tokens)), reply);
  }
}

TEST(HarmonyParser, LimitsWarnings) {
  std::string text = "<|channel|>final<|message|>";
  for (int i = 0; i < 1000; ++i) text += "<|message|>";
  EXPECT_EQ(reply_to(text).warnings.size(), 16u);
}

TEST(HarmonyStops, EndMessagesDoNotEndReplies) {
  const auto token = [](std::string_view name) { return *vocabulary().special(name); };
  const std::vector<TokenId> stops = stop_tokens(vocabulary());
  EXPECT_EQ(stops, (std::vector<TokenId>{token("<|return|>"), token("<|call|>"), token("<|endoftext|>")}));
}

}  // namespace
}  // namespace inferno::harmony
