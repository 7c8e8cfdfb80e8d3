#include "chat/reply/tool_calls.h"

#include <gtest/gtest.h>

#include <random>

#include "chat/conversation.h"
#include "support/replies.h"

namespace inferno {
namespace {

using testing::Call;
using testing::Reply;

const std::string hermes = "… <tool_call> …";
const std::string llama = "<|start_header_id|> {% if tools %} <|python_tag|>";
const std::string mistral = "[TOOL_CALLS]";
const std::string granite = "<|tool_call|>";
const std::string phi = "<|tool|>{{ tools }}<|/tool|>";

Conversation offering() {
  Conversation conversation;
  conversation.messages = parse_json(R"([{"role": "user", "content": "?"}])", "messages");
  conversation.tools = parse_json(R"([{"type": "function", "function": {"name": "f"}},
                                      {"type": "function", "function": {"name": "get.weather"}}])",
                                  "tools");
  return conversation;
}

Reply extracted(const std::string& family, const std::vector<std::string>& pieces) {
  ToolCallExtractor extractor(tool_call_syntax(family), offering());
  ReplyParts parts;
  Reply reply;
  for (const std::string& piece : pieces) {
    extractor.push(piece, parts);
    testing::add(reply, parts.take());
  }
  extractor.finish(parts);
  testing::add(reply, parts.take());
  return reply;
}

// Checks that every split into two pieces and into single bytes gives the same.
Reply extracted(const std::string& family, const std::string& text) {
  const Reply whole = extracted(family, std::vector{text});
  std::vector<std::string> bytes;
  for (const char byte : text) bytes.emplace_back(1, byte);
  EXPECT_EQ(extracted(family, bytes), whole) << text;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    EXPECT_EQ(extracted(family, std::vector{text.substr(0, cut), text.substr(cut)}), whole)
        << text << " at " << cut;
  }
  return whole;
}

const std::string invalid = "the model wrote an invalid tool call, returned as text";
const std::string unfinished = "the model did not finish a tool call";
const std::string not_json = "the arguments of a tool call are not valid JSON";

TEST(ToolCalls, AreFoundForQwenAndHermes) {
  EXPECT_EQ(extracted(hermes, "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": 1}}\n</tool_call>"),
            (Reply{"", "", {{"f", "{\"a\": 1}"}}, {}}));
  EXPECT_EQ(extracted(hermes,
                      "Let me look.\n<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>\n"
                      "<tool_call>\n{\"name\": \"get.weather\", \"arguments\": {\"b\":[2]}}\n</tool_call>"),
            (Reply{"Let me look.\n", "", {{"f", "{}"}, {"get.weather", "{\"b\":[2]}"}}, {}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call> and then"),
            (Reply{" and then", "", {{"f", "{}"}}, {}}));
  EXPECT_EQ(
      extracted(hermes, "<tool_call>\n{\"name\": \"f\"}\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>"),
      (Reply{"", "", {{"f", "{}"}, {"f", "{}"}}, {}}));
}

TEST(ToolCalls, AreFoundForLlama) {
  EXPECT_EQ(extracted(llama, "{\"name\": \"f\", \"parameters\": {\"a\": \"x\"}}"),
            (Reply{"", "", {{"f", "{\"a\": \"x\"}"}}, {}}));
  EXPECT_EQ(extracted(llama, "<|python_tag|>{\"type\": \"function\", \"name\": \"f\", \"parameters\": {}}"),
            (Reply{"", "", {{"f", "{}"}}, {}}));
  EXPECT_EQ(extracted(llama,
                      "{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"f\", \"parameters\": {\"n\": 2}}"),
            (Reply{"", "", {{"f", "{}"}, {"f", "{\"n\": 2}"}}, {}}));
}

TEST(ToolCalls, AreNotSeenInOtherJson) {
  for (const char* text :
       {"{\"colour\": \"red\"}", "{\"name\": \"Ann\", \"age\": 3}", "{\"name\": 5}", "{}", "{",
        "Here: {\"name\": \"f\", \"parameters\": {}}", "[1, 2]", "  {\"type\": \"x\""}) {
    EXPECT_EQ(extracted(llama, text), (Reply{text, "", {}, {}}));
  }
  EXPECT_EQ(extracted(hermes, "{\"name\": \"f\", \"arguments\": {}}").calls.size(), 0u);
}

TEST(ToolCalls, AreFoundForMistral) {
  EXPECT_EQ(extracted(mistral,
                      "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"123456789\"}, "
                      "{\"name\": \"f\", \"arguments\": {}}]"),
            (Reply{"", "", {{"f", "{\"a\": 1}"}, {"f", "{}"}}, {}}));
  EXPECT_EQ(
      extracted(
          mistral,
          "Sure.[TOOL_CALLS]f[ARGS]{\"a\": {\"b\": \"}\"}}[TOOL_CALLS]get.weather[CALL_ID]123456789[ARGS]{}"),
      (Reply{"Sure.", "", {{"f", "{\"a\": {\"b\": \"}\"}}"}, {"get.weather", "{}"}}, {}}));
  EXPECT_EQ(extracted(mistral, "[TOOL_CALLS] f {\"a\": 1}"), (Reply{"", "", {{"f", "{\"a\": 1}"}}, {}}));
}

TEST(ToolCalls, AreFoundForGraniteAndPhi) {
  const std::string list =
      "[{\"name\": \"f\", \"arguments\": {\"a\": 1}}, {\"name\": \"f\", \"arguments\": {}}]";
  const Reply expected{"", "", {{"f", "{\"a\": 1}"}, {"f", "{}"}}, {}};
  EXPECT_EQ(extracted(granite, "<|tool_call|>" + list), expected);
  EXPECT_EQ(extracted(granite, "<|tool_call|> " + list + "<|/tool_call|>\n"), expected);
  EXPECT_EQ(extracted(phi, "functools" + list), expected);
  EXPECT_EQ(extracted(phi, "import functools\n"), (Reply{"import functools\n", "", {}, {}}));
}

TEST(ToolCalls, HaveArgumentsExactlyAsTheModelWroteThem) {
  const std::string arguments =
      "{ \"text\": \"a } \\\" ] { \\\\\", \"u\": \"\\u00fc ü 😀\",\n\t\"deep\": [[{\"x\": -1.5e3}], null] }";
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"arguments\": " + arguments + ", \"name\": \"f\"}</tool_call>"),
            (Reply{"", "", {{"f", arguments}}, {}}));
  ToolCallExtractor extractor(tool_call_syntax(hermes), offering());
  ReplyParts parts;
  extractor.push("<tool_call>{\"name\": \"f\", \"arguments\": {\"a\"", parts);
  EXPECT_EQ(parts.take().size(), 1u);
  extractor.push(": 1", parts);
  const auto piece = parts.take();
  ASSERT_EQ(piece.size(), 1u);
  EXPECT_EQ(std::get<ToolCallDelta>(piece[0]).arguments, ": 1");
}

TEST(ToolCalls, MayDeviateFromTheFamilysForm) {
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": \"{\\\"a\\\": 1}\"}</tool_call>"),
            (Reply{"", "", {{"f", "{\"a\": 1}"}}, {}}));
  EXPECT_EQ(extracted(hermes,
                      "<tool_call>{\"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": "
                      "{}}}</tool_call>"),
            (Reply{"", "", {{"f", "{}"}}, {}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"function\": \"f\", \"arguments\": null}</tool_call>"),
            (Reply{"", "", {{"f", "{}"}}, {}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"n\\u0061\": 1, \"name\": \"\\u0066\"}</tool_call>"),
            (Reply{"", "", {{"f", "{}"}}, {}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>[{\"name\": \"f\", \"arguments\": {}}]</tool_call>"),
            (Reply{"", "", {{"f", "{}"}}, {}}));
}

TEST(ToolCalls, AreContentIfTheyAreInvalid) {
  for (const char* text : {"<tool_call>oops</tool_call>",
                           "<tool_call>\n{\"name\": ", "<tool_call>{\"arguments\": {\"a\": 1}}</tool_call>",
                           "<tool_call>{name: f}</tool_call>", "<tool_call>", "<tool_call>[]</tool_call>",
                           "<tool_call>{\"name\": \"\"}"}) {
    EXPECT_EQ(extracted(hermes, text), (Reply{text, "", {}, {invalid}})) << text;
  }
  EXPECT_EQ(extracted(mistral, "[TOOL_CALLS]not a name!"),
            (Reply{"[TOOL_CALLS]not a name!", "", {}, {invalid}}));
  for (const char* text : {"a <tool", "</tool_call>", "a < b", "<tool_cal>"}) {
    EXPECT_EQ(extracted(hermes, text), (Reply{text, "", {}, {}})) << text;
  }
}

TEST(ToolCalls, CauseAWarningIfUnfinished) {
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"unfinish"),
            (Reply{"", "", {{"f", "{\"a\": \"unfinish"}}, {unfinished}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1</tool_call> more"),
            (Reply{" more", "", {{"f", "{\"a\": 1"}}, {unfinished}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}</tool_call>"),
            (Reply{"", "", {{"f", "{\"a\": 1}"}}, {unfinished}}));
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1]}</tool_call>").warnings,
            std::vector{unfinished});
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"f\", \"arguments\": {a: 1}}</tool_call>"),
            (Reply{"", "", {{"f", "{a: 1}"}}, {not_json}}));
  EXPECT_EQ(extracted(mistral, "[TOOL_CALLS][{\"name\": \"f\", \"arguments\": {}}, "),
            (Reply{"", "", {{"f", "{}"}}, {"the model did not finish a list of tool calls"}}));
}

TEST(ToolCalls, OfUnknownFunctionsCauseAWarning) {
  EXPECT_EQ(extracted(hermes, "<tool_call>{\"name\": \"g\", \"arguments\": {}}</tool_call>"),
            (Reply{"", "", {{"g", "{}"}}, {"the model called \"g\", which was not offered"}}));
}

TEST(ToolCalls, LoseNoTextOfAnyMixOfMarkersAndJson) {
  const std::vector<std::string> pieces = {"<tool_call>",
                                           "</tool_call>",
                                           "[TOOL_CALLS]",
                                           "[ARGS]",
                                           "<|tool_call|>",
                                           "<|python_tag|>",
                                           "functools[",
                                           "{",
                                           "}",
                                           "[",
                                           "]",
                                           "\"name\"",
                                           "\"arguments\"",
                                           ": ",
                                           ", ",
                                           "\"f\"",
                                           "f",
                                           "\n",
                                           " ",
                                           "ü",
                                           "<",
                                           ";",
                                           "{\"name\": \"f\", \"arguments\": {\"a\": 1}}"};
  std::mt19937 random(11);
  std::size_t calls = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::vector<std::string> families = {hermes, llama, mistral, granite, phi};
    std::string text;
    for (std::size_t n = random() % 9; n > 0; --n) text += pieces[random() % pieces.size()];
    const Reply reply = extracted(families[random() % families.size()], text);
    calls += reply.calls.size();
    if (reply.calls.empty()) {
      EXPECT_EQ(reply.content, text);
    }
  }
  EXPECT_GT(calls, 10u);
}

TEST(ToolCalls, HaveIdsThatFitTheFamily) {
  const auto first_id = [](const std::string& family, const std::string& text) {
    ToolCallExtractor extractor(tool_call_syntax(family), offering());
    ReplyParts parts;
    extractor.push(text, parts);
    return std::get<ToolCallDelta>(parts.take().at(0)).id;
  };
  EXPECT_EQ(first_id(mistral, "[TOOL_CALLS]f{}").size(), 9u);
  EXPECT_TRUE(first_id(hermes, "<tool_call>{\"name\": \"f\"}").starts_with("call_"));
  Conversation conversation = offering();
  const CallIds ids(conversation);
  EXPECT_NE(ids.make(0), ids.make(1));
  EXPECT_EQ(ids.make(0), CallIds(conversation).make(0));
  conversation.call_seed = 1;
  EXPECT_NE(ids.make(0), CallIds(conversation).make(0));
}

}  // namespace
}  // namespace inferno
