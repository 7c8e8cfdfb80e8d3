#include <gtest/gtest.h>

#include "server/anthropic/messages_input.h"
#include "server/api_error.h"

namespace inferno::server {
namespace {

MessagesConversation read(const char* messages) {
  return read_conversation(nullptr, Json::parse(messages));
}

std::string problem(const char* messages) {
  try {
    read(messages);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    return error.message;
  }
  return "none";
}

TEST(MessagesConversation, ReadsTextAsStringsAndBlocks) {
  const auto conversation = read(R"([
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [{"type": "text", "text": "Hello", "citations": null}]},
    {"role": "user", "content": [{"type": "text", "text": "one", "cache_control": {"type": "ephemeral"}},
                                 {"type": "text", "text": "two"}]}])");
  EXPECT_EQ(conversation.messages, Json::parse(R"([
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "one\ntwo"}])"));
  EXPECT_FALSE(conversation.ends_with_assistant);
  EXPECT_TRUE(conversation.ignored.empty());
}

TEST(MessagesConversation, LeavesOutAndNamesWhatToolsOfAnthropicLeftBehind) {
  const auto conversation = read(R"([
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": [
      {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
      {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
      {"type": "text", "text": "Found."}]},
    {"role": "user", "content": [{"type": "container_upload", "file_id": "f"}, {"type": "text", "text": "Go on"}]}])");
  EXPECT_EQ(conversation.messages, Json::parse(R"([
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Found."},
    {"role": "user", "content": "Go on"}])"));
  EXPECT_EQ(conversation.ignored,
            (std::vector<std::string>{"messages[1].content[0].type=server_tool_use",
                                      "messages[1].content[1].type=web_search_tool_result",
                                      "messages[2].content[0].type=container_upload"}));
}

TEST(MessagesConversation, ReadsTheSystemPromptAsStringOrBlocks) {
  const Json messages = Json::parse(R"([{"role": "user", "content": "Hi"}])");
  const auto system_of = [&](const char* text) {
    const Json system = Json::parse(text);
    return read_conversation(&system, messages).messages[0];
  };
  EXPECT_EQ(system_of(R"("Be brief.")"), Json({{"role", "system"}, {"content", "Be brief."}}));
  EXPECT_EQ(system_of(R"([{"type": "text", "text": "A"},
                          {"type": "text", "text": "B", "cache_control": {"type": "ephemeral"}}])"),
            Json({{"role", "system"}, {"content", "A\nB"}}));
  EXPECT_EQ(system_of(R"("")").at("role"), "user");
}

TEST(MessagesConversation, LeavesOutTheBillingLineThatChangesWithEveryRequest) {
  const Json messages = Json::parse(R"([{"role": "user", "content": "Hi"}])");
  for (const char* text :
       {R"([{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.37; cch=0a1b2;"},
            {"type": "text", "text": "You are an agent."}])",
        R"("x-anthropic-billing-header: cc_version=2.1.37; cch=0a1b2;\nYou are an agent.")"}) {
    const Json system = Json::parse(text);
    const auto conversation = read_conversation(&system, messages);
    EXPECT_EQ(conversation.messages[0].at("content"), "You are an agent.");
    EXPECT_EQ(conversation.ignored, std::vector<std::string>{"system.x-anthropic-billing-header"});
  }
}

TEST(MessagesConversation, GivesCallsResultsAndThinkingToTheModel) {
  const auto conversation = read(R"([
    {"role": "user", "content": "List both."},
    {"role": "assistant", "content": [
      {"type": "thinking", "thinking": "Two calls.", "signature": "EqQB"},
      {"type": "redacted_thinking", "data": "xyz"},
      {"type": "text", "text": "I look."},
      {"type": "tool_use", "id": "toolu_call_a", "name": "ls", "input": {"path": "/a", "n": 1}},
      {"type": "tool_use", "id": "b", "name": "ls", "input": {}}]},
    {"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "toolu_call_a", "content": "x"},
      {"type": "tool_result", "tool_use_id": "b"},
      {"type": "text", "text": "Go on."}]}])");
  EXPECT_EQ(conversation.messages, Json::parse(R"([
    {"role": "user", "content": "List both."},
    {"role": "assistant", "content": "I look.", "reasoning": "Two calls.", "tool_calls": [
      {"id": "call_a", "type": "function", "function": {"name": "ls", "arguments": "{\"path\":\"/a\",\"n\":1}"}},
      {"id": "b", "type": "function", "function": {"name": "ls", "arguments": "{}"}}]},
    {"role": "tool", "tool_call_id": "call_a", "content": "x"},
    {"role": "tool", "tool_call_id": "b", "content": ""},
    {"role": "user", "content": "Go on."}])"));
  EXPECT_EQ(conversation.ignored, std::vector<std::string>{"redacted_thinking"});
}

std::string result_text(const char* fields) {
  Json messages = Json::parse(R"([{"role": "user", "content": "?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
    {"role": "user", "content": []}])");
  Json result = {{"type", "tool_result"}, {"tool_use_id", "a"}};
  result.update(Json::parse(fields));
  messages[2]["content"].push_back(std::move(result));
  return read_conversation(nullptr, messages).messages.back().at("content");
}

TEST(MessagesConversation, ReadsToolResultsInEveryForm) {
  EXPECT_EQ(result_text("{}"), "");
  EXPECT_EQ(result_text(R"({"content": null})"), "");
  EXPECT_EQ(result_text(R"({"content": []})"), "");
  EXPECT_EQ(result_text(R"({"content": "x", "is_error": false})"), "x");
  EXPECT_EQ(result_text(R"({"content": [{"type": "text", "text": "x"}, {"type": "text", "text": "y"}]})"),
            "x\ny");
  EXPECT_EQ(result_text(R"({"content": [{"type": "tool_reference", "tool_name": "ls"}]})"), "ls");
  EXPECT_EQ(result_text(R"({"content": "no such file", "is_error": true})"), "Error: no such file");
  EXPECT_EQ(result_text(R"({"content": "Error: no such file", "is_error": true})"), "Error: no such file");
  EXPECT_EQ(result_text(R"({"is_error": true})"), "Error");
}

TEST(MessagesConversation, ReadsThinkingFromASignatureThatCarriesIt) {
  Json messages = Json::parse(R"([{"role": "user", "content": "?"},
    {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": ""},
                                      {"type": "text", "text": "A"}]},
    {"role": "user", "content": "!"}])");
  EXPECT_FALSE(read_conversation(nullptr, messages).messages[1].contains("reasoning"));
  messages[1]["content"][0]["signature"] = thinking_signature("So.", ThinkingDisplay::omitted);
  EXPECT_EQ(read_conversation(nullptr, messages).messages[1].at("reasoning"), "So.");
}

TEST(MessagesConversation, JoinsConsecutiveMessagesOfOneRole) {
  const auto conversation = read(R"([
    {"role": "user", "content": "a"}, {"role": "user", "content": "b"},
    {"role": "assistant", "content": "c"}, {"role": "assistant", "content": []},
    {"role": "user", "content": "d"}])");
  EXPECT_EQ(conversation.messages, Json::parse(R"([{"role": "user", "content": "a\nb"},
    {"role": "assistant", "content": "c"}, {"role": "user", "content": "d"}])"));
}

TEST(MessagesConversation, AcceptsInstructionsAmongTheMessages) {
  const Json system = "A";
  const auto conversation = read_conversation(&system, Json::parse(R"([{"role": "system", "content": "B"},
    {"role": "user", "content": "c"}, {"role": "system", "content": [{"type": "text", "text": "D"}]}])"));
  EXPECT_EQ(conversation.messages, Json::parse(R"([{"role": "system", "content": "A\nB"},
    {"role": "user", "content": "c"}, {"role": "system", "content": "D"}])"));
  EXPECT_EQ(problem(R"([{"role": "system", "content": "a"}])"),
            "messages: expected a message of the user with content");
}

TEST(MessagesConversation, CanPutLaterInstructionsIntoMessagesOfTheUser) {
  Json messages = Json::parse(R"([{"role": "system", "content": "A"}, {"role": "user", "content": "b"},
    {"role": "system", "content": "C"}, {"role": "user", "content": "d"}, {"role": "assistant", "content": "e"},
    {"role": "system", "content": "F"}])");
  EXPECT_TRUE(inline_instructions(messages));
  EXPECT_EQ(messages, Json::parse(R"([{"role": "system", "content": "A"},
    {"role": "user", "content": "b\n<system-reminder>\nC\n</system-reminder>\nd"}, {"role": "assistant", "content": "e"},
    {"role": "user", "content": "<system-reminder>\nF\n</system-reminder>"}])"));
  EXPECT_FALSE(inline_instructions(messages));
}

TEST(MessagesConversation, ContinuesAnAssistantMessageAtTheEnd) {
  EXPECT_TRUE(read(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": "The"}])")
                  .ends_with_assistant);
  const auto empty = read(R"([{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}])");
  EXPECT_FALSE(empty.ends_with_assistant);
  EXPECT_EQ(empty.messages.size(), 1u);
}

TEST(MessagesConversation, NamesThePathOfABlockThatIsNotText) {
  EXPECT_TRUE(problem(R"([{"role": "user", "content": [{"type": "text", "text": "see"},
      {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": ""}}]}])")
                  .starts_with("messages[0].content[1]: a block of type \"image\" is not supported"));
  EXPECT_TRUE(problem(R"([{"role": "user", "content": [{"type": "document", "source": {}}]}])")
                  .starts_with("messages[0].content[0]: a block of type \"document\""));
  EXPECT_TRUE(problem(R"([{"role": "user", "content": "?"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
                                    "content": [{"type": "image", "source": {}}]}]}])")
                  .starts_with("messages[2].content[0].content[0]: a block of type \"image\""));
}

TEST(MessagesConversation, RefusesWhatIsMalformed) {
  EXPECT_EQ(problem("{}"), "messages: expected an array, found object");
  EXPECT_EQ(problem("[]"), "messages: expected at least one message");
  EXPECT_EQ(problem(R"(["a"])"), "messages[0]: expected an object, found string");
  EXPECT_EQ(problem(R"([{"content": "a"}])"), "messages[0].role: field required");
  EXPECT_EQ(problem(R"([{"role": "user"}])"), "messages[0].content: field required");
  EXPECT_EQ(problem(R"([{"role": "user", "content": 1}])"),
            "messages[0].content: expected a string or an array of blocks, found number");
  EXPECT_EQ(problem(R"([{"role": "user", "content": [{"type": "text"}]}])"),
            "messages[0].content[0].text: field required");
  EXPECT_EQ(problem(R"([{"role": "user", "content": []}])"),
            "messages: expected a message of the user with content");
  EXPECT_EQ(problem(R"([{"role": "assistant", "content": []}])"),
            "messages: expected a message of the user with content");
  EXPECT_TRUE(problem(R"([{"role": "tool", "content": "x"}])").find("tool_result") != std::string::npos);
  EXPECT_EQ(problem(R"([{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "z"}]}])"),
            "messages[0].content[0].tool_use_id: no earlier block of type \"tool_use\" has the id \"z\"");
  EXPECT_EQ(problem(R"([{"role": "user", "content": "?"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "x"}]}])"),
            "messages[1].content[0].input: expected an object, found string");
  EXPECT_TRUE(problem(R"([{"role": "user", "content": "?"},
      {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}])")
                  .starts_with("messages: the last message calls a tool"));
}

}  // namespace
}  // namespace inferno::server
