#include "server/openai/responses_input.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "server/exchange_scene.h"

namespace inferno::server {
namespace {

struct CallScene {
  ServerScene server{nullptr};
  std::shared_ptr<Call> call = server.make_call("{}", std::make_shared<RecordedExchange>());
};

ResponsesInput read(const std::string& input, const std::string& instructions = {}) {
  CallScene scene;
  return read_input(parse_json(input, "input"), instructions, *scene.call);
}

Json messages(const std::string& input, const std::string& instructions = {}) {
  return read(input, instructions).messages;
}

std::string refused_param(const std::string& input) {
  try {
    read(input);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.param;
  }
  return "accepted";
}

TEST(ResponsesInput, TakesAStringAsAMessageOfTheUser) {
  EXPECT_EQ(messages("\"Hi\""), parse_json(R"([{"role": "user", "content": "Hi"}])", "messages"));
}

TEST(ResponsesInput, JoinsInstructionsAndLeadingSystemMessages) {
  EXPECT_EQ(
      messages(
          R"([{"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
                         {"role": "user", "content": "Hi"},
                         {"role": "system", "content": "Now rhyme."}])",
          "Be brief."),
      parse_json(R"([{"role": "system", "content": "Be brief.\n\nBe kind."},
                           {"role": "user", "content": "Hi"},
                           {"role": "system", "content": "Now rhyme."}])",
                 "messages"));
}

TEST(ResponsesInput, KeepsTheRoleOfASingleDeveloperMessage) {
  EXPECT_EQ(
      messages(R"([{"role": "developer", "content": "Be kind."}, {"role": "user", "content": "Hi"}])")[0],
      parse_json(R"({"role": "developer", "content": "Be kind."})", "message"));
}

TEST(ResponsesInput, MakesOneMessageOfReasoningTextAndCalls) {
  EXPECT_EQ(messages(R"([{"role": "user", "content": "Weather?"},
      {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Two calls."}]},
      {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant",
       "content": [{"type": "output_text", "text": "Looking.", "annotations": [], "logprobs": []}]},
      {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{}", "status": "completed"},
      {"type": "function_call", "call_id": "call_2", "name": "g", "arguments": "{\"a\": 1}"},
      {"type": "function_call_output", "call_id": "call_1", "output": "sunny"},
      {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "dry"}]}])"),
            parse_json(R"([{"role": "user", "content": "Weather?"},
      {"role": "assistant", "content": "Looking.", "reasoning_content": "Two calls.", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "f", "arguments": "{}"}},
        {"id": "call_2", "type": "function", "function": {"name": "g", "arguments": "{\"a\": 1}"}}]},
      {"role": "tool", "tool_call_id": "call_1", "content": "sunny"},
      {"role": "tool", "tool_call_id": "call_2", "content": "dry"}])",
                       "messages"));
}

TEST(ResponsesInput, FoldsThoughtsBetweenTextAndCallIntoOneTurn) {
  const Json turn =
      messages(R"([{"type": "reasoning", "content": [{"type": "reasoning_text", "text": "One."}]},
      {"role": "assistant", "content": "Wait."},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Two."}]},
      {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}])");
  ASSERT_EQ(turn.size(), 1u);
  EXPECT_EQ(turn[0].at("reasoning_content"), "One.\n\nTwo.");
  EXPECT_EQ(turn[0].at("content"), "Wait.");
}

TEST(ResponsesInput, KeepsTextsWithoutCallsApart) {
  const Json texts =
      messages(R"([{"role": "assistant", "content": "A"}, {"role": "assistant", "content": "B"}])");
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_EQ(texts[1].at("content"), "B");
}

TEST(ResponsesInput, NamesReasoningThatLeadsNowhere) {
  CallScene scene;
  const Json input = parse_json(R"([{"role": "user", "content": "Hi"},
      {"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]},
      {"role": "user", "content": "Well?"},
      {"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}])",
                                "input");
  EXPECT_EQ(read_input(input, "", *scene.call).messages.size(), 2u);
  EXPECT_EQ(scene.call->ignored(), (std::vector<std::string>{"input[1]", "input[3].encrypted_content"}));
}

TEST(ResponsesInput, TakesCustomToolsOfAnEarlierModelAsFunctions) {
  const Json turn =
      messages(R"([{"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "a\nb"},
      {"type": "custom_tool_call_output", "call_id": "c", "output": "done"}])");
  EXPECT_EQ(turn[0].at("tool_calls")[0].at("function").at("arguments"), R"({"input":"a\nb"})");
  EXPECT_EQ(turn[1].at("content"), "done");
}

TEST(ResponsesInput, KeepsSeveralPartsForTheTemplateToJoin) {
  EXPECT_EQ(
      messages(
          R"([{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_text", "text": "b"}]}])")
          [0]
              .at("content"),
      parse_json(R"([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])", "content"));
}

TEST(ResponsesInput, NamesTheItemItCannotTake) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"7", "input"},
      {"[]", "input"},
      {"[7]", "input[0]"},
      {R"([{"type": "item_reference", "id": "msg_1"}])", "input[0]"},
      {R"([{"id": "msg_1"}])", "input[0]"},
      {R"([{"type": "compaction", "encrypted_content": "x"}])", "input[0].type"},
      {R"([{"role": "tool", "content": "x"}])", "input[0].role"},
      {R"([{"role": "user"}])", "input[0].content"},
      {R"([{"role": "user", "content": 7}])", "input[0].content"},
      {R"([{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}])",
       "input[0].content[0].type"},
      {R"([{"role": "user", "content": [{"type": "input_text"}]}])", "input[0].content[0].text"},
      {R"([{"type": "function_call", "name": "f", "arguments": "{}"}])", "input[0].call_id"},
      {R"([{"type": "function_call", "call_id": "c", "arguments": "{}"}])", "input[0].name"},
      {R"([{"type": "function_call", "call_id": "c", "name": "f", "arguments": {}}])", "input[0].arguments"},
      {R"([{"type": "function_call_output", "call_id": "c", "output": "x"}])", "input[0].call_id"},
      {R"([{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
           {"type": "function_call_output", "call_id": "c"}])",
       "input[1].output"},
  };
  for (const auto& [input, param] : cases) EXPECT_EQ(refused_param(input), param) << input;
}

TEST(ResponsesInput, LeavesOutAndNamesWhatToolsOfOpenAILeftBehind) {
  CallScene scene;
  const Json items = parse_json(R"([{"role": "user", "content": "Hi"},
                     {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {}},
                     {"role": "assistant", "content": [{"type": "output_text", "text": "Found."}]},
                     {"role": "user", "content": "Go on"}])",
                                "input");
  EXPECT_EQ(read_input(items, "", *scene.call).messages.size(), 3u);
  EXPECT_EQ(scene.call->ignored(), (std::vector<std::string>{"input[1].type=web_search_call"}));
  EXPECT_EQ(scene.call->warnings().size(), 1u);
  for (const char* type : {"local_shell_call", "local_shell_call_output", "shell_call",
                           "apply_patch_call_output", "computer_call", "mcp_approval_request"}) {
    CallScene other;
    const Json history = {{{"role", "user"}, {"content", "Hi"}}, {{"type", type}, {"id", "x"}}};
    EXPECT_EQ(read_input(history, "", *other.call).messages.size(), 1u) << type;
    EXPECT_EQ(other.call->ignored(), (std::vector<std::string>{"input[1].type=" + std::string(type)}));
  }
  EXPECT_EQ(refused_param(R"([{"type": "web_search_call", "id": "ws_1"}])"), "input");
}

TEST(ResponsesTools, LeavesOutAndNamesWhatIsNoFunction) {
  CallScene scene;
  OfferedTools tools;
  add_tools(tools,
            parse_json(R"([{"type": "function", "name": "f", "description": "d", "strict": true,
                            "parameters": {"type": "object", "properties": {}}},
                           {"type": "web_search"}, {"type": "namespace", "name": "n", "tools": []},
                           {"type": "function", "name": "g", "output_schema": {"type": "string"}, "defer_loading": false}])",
                       "tools"),
            "tools", *scene.call);
  ASSERT_EQ(tools.rendered.size(), 2u);
  EXPECT_EQ(tools.rendered[0].at("function").at("name"), "f");
  EXPECT_FALSE(tools.rendered[0].at("function").contains("strict"));
  EXPECT_EQ(tools.shown[0].at("strict"), true);
  EXPECT_EQ(tools.shown[1],
            parse_json(R"({"type": "function", "name": "g", "parameters": null, "strict": false})", "tool"));
  EXPECT_EQ(scene.call->ignored(),
            (std::vector<std::string>{"tools[1].type=web_search", "tools[2].type=namespace",
                                      "tools.output_schema"}));
}

TEST(ResponsesTools, RefusesTwoOfTheSameName) {
  CallScene scene;
  OfferedTools tools;
  const Json twice =
      parse_json(R"([{"type": "function", "name": "f"}, {"type": "function", "name": "f"}])", "tools");
  EXPECT_THROW(add_tools(tools, twice, "tools", *scene.call), ApiError);
}

TEST(ResponsesTools, AreFoundInTheInputToo) {
  const auto input = read(
      R"([{"type": "additional_tools", "role": "developer", "tools": [{"type": "function", "name": "f"}]},
                              {"role": "user", "content": "Hi"}])");
  EXPECT_EQ(input.tools.rendered.size(), 1u);
  EXPECT_EQ(input.messages.size(), 1u);
}

}  // namespace
}  // namespace inferno::server
