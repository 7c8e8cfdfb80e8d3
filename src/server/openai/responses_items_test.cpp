#include "server/openai/responses_items.h"

#include <gtest/gtest.h>

#include <vector>

namespace inferno::server {
namespace {

struct Scene {
  std::vector<Json> events;
  OutputItems items{"abc", [this](Json event) { events.push_back(std::move(event)); }};

  std::vector<std::string> types() const {
    std::vector<std::string> types;
    for (const Json& event : events) types.push_back(event.at("type"));
    return types;
  }
};

TEST(OutputItems, AnnouncesAPartBeforeItsTextAndClosesItAfterwards) {
  Scene scene;
  scene.items.add_text("Hel", Json::array());
  scene.items.add_text("lo", Json::array());
  scene.items.finish(/*was_cut=*/false);
  EXPECT_EQ(scene.types(),
            (std::vector<std::string>{"response.output_item.added", "response.content_part.added",
                                      "response.output_text.delta", "response.output_text.delta",
                                      "response.output_text.done", "response.content_part.done",
                                      "response.output_item.done"}));
  EXPECT_EQ(scene.events.front().at("item").at("content"), Json::array());
  EXPECT_EQ(scene.events.front().at("item").at("status"), "in_progress");
  const Json& done = scene.events.back().at("item");
  EXPECT_EQ(done.at("status"), "completed");
  EXPECT_EQ(done.at("content").at(0).at("text"), "Hello");
  EXPECT_EQ(scene.items.items(), Json::array({done}));
}

TEST(OutputItems, ClosesAnItemBeforeTheNextKindOpens) {
  Scene scene;
  scene.items.add_reasoning("think");
  scene.items.add_text("say", Json::array());
  scene.items.add_call({.index = 0, .id = "call_1", .name = "f", .arguments = "{"});
  scene.items.add_call({.index = 0, .id = "", .name = "", .arguments = "}"});
  scene.items.add_call({.index = 1, .id = "call_2", .name = "g", .arguments = "{}"});
  scene.items.finish(/*was_cut=*/false);
  int open = 0, index = 0;
  for (const Json& event : scene.events) {
    EXPECT_EQ(event.at("output_index"), index);
    if (event.at("type") == "response.output_item.added") ++open;
    EXPECT_EQ(open, 1);
    if (event.at("type") != "response.output_item.done") continue;
    --open;
    ++index;
  }
  const Json items = scene.items.items();
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[0], (Json{{"id", "rs_abc00"},
                            {"type", "reasoning"},
                            {"summary", Json::array()},
                            {"content", Json::array({{{"type", "reasoning_text"}, {"text", "think"}}})},
                            {"status", "completed"}}));
  EXPECT_EQ(items[1].at("id"), "msg_abc01");
  EXPECT_EQ(items[2], (Json{{"id", "fc_abc02"},
                            {"type", "function_call"},
                            {"status", "completed"},
                            {"arguments", "{}"},
                            {"call_id", "call_1"},
                            {"name", "f"}}));
  EXPECT_EQ(items[3].at("call_id"), "call_2");
}

TEST(OutputItems, TellEveryChangeInOrderAlsoOfTextAfterACall) {
  Scene scene;
  scene.items.add_reasoning("think");
  scene.items.add_text("say", Json::array());
  scene.items.add_call({.index = 0, .id = "call_1", .name = "f", .arguments = "{}"});
  scene.items.add_text("more", Json::array());
  scene.items.finish(/*was_cut=*/false);
  EXPECT_EQ(scene.types(), (std::vector<std::string>{"response.output_item.added",
                                                     "response.content_part.added",
                                                     "response.reasoning_text.delta",
                                                     "response.reasoning_text.done",
                                                     "response.content_part.done",
                                                     "response.output_item.done",
                                                     "response.output_item.added",
                                                     "response.content_part.added",
                                                     "response.output_text.delta",
                                                     "response.output_text.done",
                                                     "response.content_part.done",
                                                     "response.output_item.done",
                                                     "response.output_item.added",
                                                     "response.function_call_arguments.delta",
                                                     "response.function_call_arguments.done",
                                                     "response.output_item.done",
                                                     "response.output_item.added",
                                                     "response.content_part.added",
                                                     "response.output_text.delta",
                                                     "response.output_text.done",
                                                     "response.content_part.done",
                                                     "response.output_item.done"}));
  const Json items = scene.items.items();
  ASSERT_EQ(items.size(), 4u);
  EXPECT_EQ(items[1].at("content").at(0).at("text"), "say");
  EXPECT_EQ(items[3].at("content").at(0).at("text"), "more");
  EXPECT_NE(items[1].at("id"), items[3].at("id"));
}

TEST(OutputItems, NamesTheFunctionAndItsArgumentsWhenACallIsDone) {
  Scene scene;
  scene.items.add_call({.index = 0, .id = "call_1", .name = "f", .arguments = ""});
  scene.items.add_call({.index = 0, .id = "", .name = "", .arguments = "{}"});
  scene.items.finish(/*was_cut=*/false);
  EXPECT_EQ(scene.types(),
            (std::vector<std::string>{"response.output_item.added", "response.function_call_arguments.delta",
                                      "response.function_call_arguments.done", "response.output_item.done"}));
  EXPECT_EQ(scene.events[2].at("name"), "f");
  EXPECT_EQ(scene.events[2].at("arguments"), "{}");
}

TEST(OutputItems, MarksTheItemThatALimitCut) {
  Scene scene;
  scene.items.add_reasoning("think");
  scene.items.add_text("sa", Json::array());
  EXPECT_EQ(scene.items.items()[1].at("status"), "incomplete");
  scene.items.finish(/*was_cut=*/true);
  EXPECT_EQ(scene.items.items()[0].at("status"), "completed");
  EXPECT_EQ(scene.items.items()[1].at("status"), "incomplete");
}

TEST(OutputItems, MarksACallWhoseArgumentsAreNoJson) {
  Scene scene;
  scene.items.add_call({.index = 0, .id = "call_1", .name = "f", .arguments = "{\"a\": ["});
  scene.items.add_text("Sorry.", Json::array());
  scene.items.finish(/*was_cut=*/false);
  EXPECT_EQ(scene.items.items()[0].at("status"), "incomplete");
  EXPECT_EQ(scene.items.items()[0].at("arguments"), "{\"a\": [");
  EXPECT_EQ(scene.items.items()[1].at("status"), "completed");
}

TEST(OutputItems, CollectsLogProbabilitiesPerMessage) {
  Scene scene;
  scene.items.add_text("a", Json::array({1}));
  scene.items.add_text("", Json::array({2}));
  scene.items.add_reasoning("hm");
  scene.items.add_text("b", Json::array({3}));
  scene.items.finish(/*was_cut=*/false);
  EXPECT_EQ(scene.items.items()[0].at("content")[0].at("logprobs"), Json::array({1, 2}));
  EXPECT_EQ(scene.items.items()[2].at("content")[0].at("logprobs"), Json::array({3}));
}

TEST(OutputItems, AreTheSameWithoutAListener) {
  OutputItems items("abc", {});
  items.add_reasoning("think");
  items.add_text("say", Json::array());
  items.finish(/*was_cut=*/false);
  EXPECT_EQ(items.items().size(), 2u);
}

}  // namespace
}  // namespace inferno::server
