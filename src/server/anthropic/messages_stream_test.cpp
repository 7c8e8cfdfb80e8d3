#include "server/anthropic/messages_stream.h"

#include <gtest/gtest.h>

namespace inferno::server {
namespace {

struct Scene {
  explicit Scene(ThinkingDisplay thinking = ThinkingDisplay::shown)
      : Scene({.id = "msg_1", .model = "tiny", .thinking = thinking, .prompt_tokens = 10}) {}
  explicit Scene(MessageEvents::Setup setup) : events(std::move(setup)) {}

  void add(const std::vector<ReplyPart>& parts) { keep(events.add(parts)); }
  void finish(std::string reason, std::string stopped_by = {}) {
    Answer answer;
    answer.finish_reason = std::move(reason);
    answer.stopped_by = std::move(stopped_by);
    answer.tokens.resize(5);
    answer.reasoning_tokens = 2;
    answer.finished.prompt_tokens = 10;
    answer.finished.cached_tokens = 7;
    keep(events.finish(answer));
    check_blocks();
  }
  void keep(const std::vector<Json>& more) {
    for (const Json& event : more) {
      all.push_back(event);
      sum.add(event);
    }
  }
  // "message_start ping start:text delta:text_delta stop …"
  std::string order() const {
    std::string text;
    for (const Json& event : all) {
      std::string name = event.at("type");
      if (event.contains("content_block"))
        name = "start:" + event["content_block"]["type"].get<std::string>();
      if (name == "content_block_delta") name = event["delta"]["type"];
      if (name == "content_block_stop") name = "stop";
      text += (text.empty() ? "" : " ") + name;
    }
    return text;
  }
  // Blocks do not overlap, and their numbers are those of their places.
  void check_blocks() const {
    int open = -1, count = 0;
    for (const Json& event : all) {
      const std::string type = event.at("type");
      if (type == "content_block_start") {
        EXPECT_EQ(open, -1);
        open = count++;
      }
      if (event.contains("index")) {
        EXPECT_EQ(event.at("index"), open);
      }
      if (type == "content_block_stop") open = -1;
    }
    EXPECT_EQ(open, -1);
  }
  const Json& content() { return sum.message().at("content"); }

  MessageEvents events;
  MessageSum sum;
  std::vector<Json> all;
};

ReplyPart call(int index, std::string id, std::string name) {
  return ToolCallDelta{.index = index, .id = std::move(id), .name = std::move(name), .arguments = {}};
}
ReplyPart arguments(int index, std::string text) {
  return ToolCallDelta{.index = index, .id = {}, .name = {}, .arguments = std::move(text)};
}

TEST(MessageEvents, StreamThinkingTextAndCallsAsBlocks) {
  Scene scene;
  scene.add({ReasoningDelta{"Let me "}});
  scene.add({ReasoningDelta{"see."}, ContentDelta{"I "}});
  scene.add({ContentDelta{"look."}});
  scene.add({call(0, "call_a", "read"), arguments(0, R"({"path")")});
  scene.add({arguments(0, R"(: "x"})"), call(1, "call_b", "list")});
  scene.finish("tool_calls");
  EXPECT_EQ(scene.order(),
            "message_start ping start:thinking thinking_delta thinking_delta signature_delta stop start:text "
            "text_delta text_delta stop start:tool_use input_json_delta input_json_delta stop start:tool_use "
            "stop message_delta message_stop");
  const Json& content = scene.content();
  ASSERT_EQ(content.size(), 4u);
  EXPECT_EQ(content[0].at("thinking"), "Let me see.");
  EXPECT_NE(content[0].at("signature"), "");
  EXPECT_EQ(content[1], Json({{"type", "text"}, {"text", "I look."}, {"citations", Json::array()}}));
  EXPECT_EQ(content[2].at("id"), "toolu_call_a");
  EXPECT_EQ(content[2].at("name"), "read");
  EXPECT_EQ(content[2].at("input"), Json({{"path", "x"}}));
  EXPECT_EQ(content[3].at("input"), Json::object());
  EXPECT_EQ(scene.sum.message().at("stop_reason"), "tool_use");
}

TEST(MessageEvents, StreamTextAfterACallAsABlockOfItsOwn) {
  Scene scene;
  scene.add({ReasoningDelta{"Hm."}});
  scene.add({ContentDelta{"First."}, call(0, "call_a", "read"), arguments(0, "{}")});
  scene.add({ContentDelta{" Then"}, ContentDelta{" this."}});
  scene.finish("tool_calls");
  EXPECT_EQ(scene.order(),
            "message_start ping start:thinking thinking_delta signature_delta stop start:text text_delta "
            "stop start:tool_use input_json_delta stop start:text text_delta text_delta stop message_delta "
            "message_stop");
  ASSERT_EQ(scene.content().size(), 4u);
  EXPECT_EQ(scene.content()[1].at("text"), "First.");
  EXPECT_EQ(scene.content()[3].at("text"), " Then this.");
  EXPECT_EQ(scene.sum.message().at("stop_reason"), "tool_use");
}

TEST(MessageEvents, CountThePromptInThreeParts) {
  Scene scene;
  scene.add({ContentDelta{"Hi"}});
  scene.finish("stop");
  EXPECT_EQ(scene.all.front().at("message").at("usage").at("input_tokens"), 10);
  EXPECT_EQ(scene.all.front().at("message").at("stop_reason"), nullptr);
  const Json& usage = scene.sum.message().at("usage");
  EXPECT_EQ(usage.at("input_tokens"), 3);
  EXPECT_EQ(usage.at("cache_read_input_tokens"), 7);
  EXPECT_EQ(usage.at("cache_creation_input_tokens"), 0);
  EXPECT_EQ(usage.at("output_tokens"), 5);
  EXPECT_EQ(usage.at("output_tokens_details").at("thinking_tokens"), 2);
  EXPECT_EQ(usage.at("service_tier"), "standard");
}

TEST(MessageEvents, SayWhyTheAnswerEnded) {
  struct Case {
    const char *finish_reason, *stopped_by, *stop_reason;
  };
  for (const Case& one : {Case{"stop", "", "end_turn"}, Case{"stop", "END", "stop_sequence"},
                          Case{"length", "", "max_tokens"}, Case{"tool_calls", "", "tool_use"}}) {
    Scene scene;
    scene.finish(one.finish_reason, one.stopped_by);
    const Json& message = scene.sum.message();
    EXPECT_EQ(message.at("stop_reason"), one.stop_reason);
    const bool is_stopped = std::string(one.stop_reason) == "stop_sequence";
    EXPECT_EQ(message.at("stop_sequence"), is_stopped ? Json("END") : Json(nullptr));
  }
}

TEST(MessageEvents, AnEmptyAnswerIsAMessageWithoutContent) {
  Scene scene;
  scene.finish("stop");
  EXPECT_EQ(scene.order(), "message_start ping message_delta message_stop");
  EXPECT_EQ(scene.content(), Json::array());
  EXPECT_EQ(scene.sum.message().at("type"), "message");
  EXPECT_EQ(scene.sum.message().at("role"), "assistant");
}

TEST(MessageEvents, HaveNoThinkingBlocksIfThinkingIsDisabled) {
  Scene scene(ThinkingDisplay::none);
  scene.add({ReasoningDelta{"a"}, ContentDelta{"b"}, ReasoningDelta{"c"}, ContentDelta{"d"}});
  scene.finish("stop");
  ASSERT_EQ(scene.content().size(), 1u);
  EXPECT_EQ(scene.content()[0].at("text"), "bd");
}

TEST(MessageEvents, CarryOmittedThinkingInTheSignature) {
  Scene scene(ThinkingDisplay::omitted);
  scene.add({ReasoningDelta{"I thünk"}, ReasoningDelta{"."}, ContentDelta{"b"}});
  scene.finish("stop");
  EXPECT_EQ(scene.content()[0].at("thinking"), "");
  EXPECT_EQ(thinking_in(scene.content()[0].at("signature").get<std::string>()), "I thünk.");
}

TEST(ThinkingSignature, CarriesTextsOfEveryLength) {
  std::string text;
  for (int i = 0; i < 10; ++i, text += 'x') {
    EXPECT_EQ(thinking_in(thinking_signature(text, ThinkingDisplay::omitted)), text);
  }
  for (const char* other :
       {"", "EqQBCgIYAhIM1gbcDa9GJwZA2b3h", "inferno-2-", "inferno-2-=", "inferno-2-@@@@", "inferno-2-abc"}) {
    EXPECT_EQ(thinking_in(other), "") << other;
  }
}

TEST(MessageEvents, ReturnArgumentsThatAreNotJsonAsText) {
  Scene scene;
  scene.add({call(0, "call_a", "run"), arguments(0, R"({"command": ls)"), arguments(0, " -l}")});
  scene.add({call(1, "call_b", "run"), arguments(1, "{}")});
  scene.finish("tool_calls");
  const Json& content = scene.content();
  ASSERT_EQ(content.size(), 3u);
  EXPECT_EQ(content[0].at("input"), Json::object());
  EXPECT_EQ(content[1].at("text"), R"({"command": ls -l})");
  EXPECT_EQ(content[2].at("id"), "toolu_call_b");
}

TEST(MessageEvents, ReturnArgumentsCutByTheTokenLimitAsText) {
  Scene scene;
  scene.add({call(0, "call_a", "run"), arguments(0, R"({"command": "rm -rf /tmp/)")});
  scene.finish("length");
  ASSERT_EQ(scene.content().size(), 2u);
  EXPECT_EQ(scene.content()[0].at("input"), Json::object());
  EXPECT_EQ(scene.content()[1].at("text"), R"({"command": "rm -rf /tmp/)");
  EXPECT_EQ(scene.sum.message().at("stop_reason"), "max_tokens");
}

TEST(MessageEvents, KeepArgumentsThatArriveAfterTheirBlockWasClosed) {
  Scene scene;
  scene.add({call(0, "call_a", "run"), arguments(0, "{"), ContentDelta{"text "}, arguments(0, "}")});
  scene.finish("tool_calls");
  EXPECT_EQ(scene.content().back().at("text"), "{text }");
}

TEST(MessageEvents, LeavesOutFurtherCallsIfTheyAreNotWanted) {
  Scene scene({.id = "msg_1", .model = "tiny", .prompt_tokens = 10, .single_call = true});
  scene.add({call(0, "call_1", "f"), arguments(0, "{}"), call(1, "call_2", "g"), arguments(1, "{}")});
  scene.finish("tool_calls");
  ASSERT_EQ(scene.content().size(), 1u);
  EXPECT_EQ(scene.content()[0].at("name"), "f");
}

}  // namespace
}  // namespace inferno::server
