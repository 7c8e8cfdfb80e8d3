// Compares with the test texts of OpenAI's Harmony library in ../shared/reference/harmony, byte for byte.
// Left out are those with browser or python tools and one with a different rule for dropping analysis.
#include <gtest/gtest.h>

#include <sstream>

#include "chat/conversation.h"
#include "chat/harmony/format.h"
#include "chat/harmony/parser.h"
#include "chat/make_chat_format.h"
#include "reference.h"
#include "support/replies.h"

namespace inferno {
namespace {

using testing::Call;
using testing::Reply;

const char* const absent = "the shared reference folder (../shared/reference) is absent";

std::string without_end(std::string text) {
  text.erase(text.find_last_not_of(" \n") + 1);
  return text;
}

class HarmonyReference : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    const auto shared = testing::shared_reference();
    if (shared && std::filesystem::is_directory(*shared / "harmony")) {
      tokenizer = load_tokenizer(*shared / "tokenizers" / "gpt-oss").release();
    }
  }
  static void TearDownTestSuite() {
    delete tokenizer;
    tokenizer = nullptr;
  }
  void SetUp() override {
    if (tokenizer == nullptr) GTEST_SKIP() << absent;
  }
  static std::string text(const std::string& name) {
    const auto path = *testing::shared_reference() / "harmony" / (name + ".txt");
    EXPECT_TRUE(std::filesystem::exists(path)) << path;
    return without_end(reference::read_file(path));
  }
  static Reply reply_to(std::span<const TokenId> tokens, const Conversation& conversation = {}) {
    return testing::parse(*harmony::make_parser(*tokenizer, {.conversation = &conversation, .opening = {}}),
                          tokens);
  }

  static const Tokenizer* tokenizer;
};
const Tokenizer* HarmonyReference::tokenizer = nullptr;

struct Rendered {
  const char* name;
  const char* conversation;  // messages, tools and variables
};

class HarmonyRendering : public HarmonyReference, public ::testing::WithParamInterface<Rendered> {};

Conversation conversation_in(const char* source) {
  const Json json = parse_json(source, "conversation");
  Conversation conversation;
  conversation.messages = json.value("messages", Json::array());
  conversation.tools = json.value("tools", Json());
  conversation.variables = json.value("variables", Json::object());
  return conversation;
}

TEST_P(HarmonyRendering, MatchesTextAndTokensOfTheLibrary) {
  ASSERT_TRUE(is_o200k_harmony(*tokenizer));
  const auto format = make_chat_format(*tokenizer, {});
  ASSERT_EQ(format->name(), "harmony");
  const std::string expected = text(GetParam().name);
  const Prompt prompt = format->render(conversation_in(GetParam().conversation));
  EXPECT_EQ(prompt.text, expected);
  EXPECT_EQ(prompt.tokens, tokenizer->encode_prompt(expected));
}

const Rendered renderings[] = {
    {"test_no_tools", R"({"variables": {"current_date": "2025-06-28"}})"},
    {"test_simple_convo",
     R"({"messages": [{"role": "user", "content": "What is 2 + 2?"}], "variables": {"current_date": null}})"},
    {"test_simple_convo_low_effort",
     R"({"messages": [{"role": "system", "content": "Answer the user's questions like a robot."},
                      {"role": "user", "content": "What is the capital of the largest country in the world?"}],
         "variables": {"current_date": null, "reasoning_effort": "low"}})"},
    {"test_simple_convo_medium_effort",
     R"({"messages": [{"role": "developer", "content": "Answer the user's questions like a robot."},
                      {"role": "user", "content": "What is the capital of the largest country in the world?"}],
         "variables": {"current_date": null}})"},
    {"test_simple_convo_high_effort",
     R"({"messages": [{"role": "system", "content": "Answer the user's questions like a robot."},
                      {"role": "user", "content": "What is the capital of the largest country in the world?"}],
         "variables": {"current_date": null, "reasoning_effort": "high"}})"},
    {"test_simple_convo_low_effort_no_instruction",
     R"({"messages": [{"role": "user", "content": "What is the capital of the largest country in the world?"}],
         "variables": {"current_date": null, "reasoning_effort": "low"}})"},
    {"test_simple_convo_medium_effort_no_instruction",
     R"({"messages": [{"role": "user", "content": "What is the capital of the largest country in the world?"}],
         "variables": {"current_date": null, "reasoning_effort": "medium"}})"},
    {"test_simple_convo_high_effort_no_instruction",
     R"({"messages": [{"role": "user", "content": "What is the capital of the largest country in the world?"}],
         "variables": {"current_date": null, "reasoning_effort": "high"}})"},
    {"test_reasoning_system_message",
     R"({"messages": [{"role": "user", "content": "What is 2 + 2?"}],
         "variables": {"current_date": null, "valid_channels": ["analysis", "final"]}})"},
    {"test_reasoning_system_message_no_instruction",
     R"({"messages": [{"role": "user", "content": "What is the best place to eat candy in the world?"}],
         "variables": {"current_date": null, "reasoning_effort": "high", "valid_channels": ["analysis", "final"]}})"},
    {"test_reasoning_system_message_with_dates",
     R"({"messages": [{"role": "user", "content": "What is 42 * pi?"}],
         "variables": {"knowledge_cutoff": "2021-01", "current_date": "2021-01-01", "valid_channels": ["analysis", "final"]}})"},
    {"test_dropping_cot_by_default",
     R"({"messages": [{"role": "user", "content": "What is 2 + 2?"},
                      {"role": "assistant", "reasoning": "User asks: “What is 2 + 2?” Simple arithmetic. Provide answer.",
                       "content": "2 + 2 equals 4."},
                      {"role": "user", "content": "What about 9 / 2?"}],
         "variables": {"system_message": false}})"},
    {"test_preserve_cot",
     R"({"messages": [{"role": "user", "content": "What is 2 + 2?"},
                      {"role": "assistant", "reasoning": "User asks a simple question: \"What is 2 + 2?\" The answer: 4.",
                       "content": "2 + 2 equals 4."},
                      {"role": "user", "content": "What about 9 / 2?"}],
         "variables": {"system_message": false, "auto_drop_analysis": false}})"},
    {"test_does_not_drop_if_ongoing_analysis",
     R"({"messages": [{"role": "user", "content": "What is the weather in SF?"},
                      {"role": "assistant", "reasoning_content":
                         "User asks: “What is the weather in SF?” We need to use lookup_weather tool.",
                       "tool_calls": [{"id": "1", "function": {"name": "lookup_weather", "content_type": "<|constrain|>json",
                                                             "arguments": "{\"location\": \"San Francisco\"}"}}]},
                      {"role": "tool", "tool_call_id": "1", "recipient": null, "channel": null,
                       "content": "{\"temperature\": 20, \"description\": \"sunny\"}"}],
         "variables": {"system_message": false}})"},
    {"test_render_functions_with_parameters",
     R"({"messages": [{"role": "system", "content": "Always respond in riddles"},
                      {"role": "user", "content": "What is the weather like in SF?"}],
         "variables": {"current_date": "2025-06-28", "reasoning_effort": "high"},
         "tools": [
           {"type": "function", "function": {"name": "get_location", "description": "Gets the location of the user."}},
           {"type": "function", "function": {"name": "get_current_weather",
             "description": "Gets the current weather in the provided location.",
             "parameters": {"type": "object", "required": ["location"], "properties": {
               "location": {"type": "string", "description": "The city and state, e.g. San Francisco, CA"},
               "format": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}}}}},
           {"type": "function", "function": {"name": "get_multiple_weathers",
             "description": "Gets the current weather in the provided list of locations.",
             "parameters": {"type": "object", "required": ["locations"], "properties": {
               "locations": {"type": "array", "items": {"type": "string"},
                 "description": "List of city and state, e.g. [\"San Francisco, CA\", \"New York, NY\"]"},
               "format": {"type": "string", "enum": ["celsius", "fahrenheit"], "default": "celsius"}}}}},
           {"type": "function", "function": {"name": "kitchensink", "description": "A function with various complex schemas.",
             "parameters": {"description": "params object", "type": "object", "properties": {
               "string": {"type": "string", "title": "STRING", "description": "A string", "examples": ["hello", "world"]},
               "string_nullable": {"type": "string", "nullable": true, "description": "A nullable string",
                                   "default": "the default"},
               "string_enum": {"type": "string", "enum": ["a", "b", "c"]},
               "oneof_string_or_number": {"description": "a oneof", "default": 20, "oneOf": [
                 {"type": "string", "default": "default_string_in_oneof"},
                 {"type": "number", "description": "numbers can happen too"}]}}}}}]})"},
};

INSTANTIATE_TEST_SUITE_P(Reference, HarmonyRendering, ::testing::ValuesIn(renderings),
                         [](const auto& instance) { return std::string(instance.param.name); });

std::vector<TokenId> ids_in(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<TokenId>(stream), std::istream_iterator<TokenId>()};
}

TEST_F(HarmonyReference, test_simple_reasoning_response) {
  EXPECT_EQ(
      reply_to(ids_in(text("test_simple_reasoning_response"))),
      (Reply{"2 + 2 = 4.", "User asks: \"What is 2 + 2?\" Simple arithmetic. Provide answer.", {}, {}}));
}

TEST_F(HarmonyReference, test_simple_tool_call) {
  Conversation conversation;
  conversation.tools =
      parse_json(R"([{"type": "function", "function": {"name": "lookup_weather"}}])", "tools");
  EXPECT_EQ(reply_to(ids_in(text("test_simple_tool_call")), conversation),
            (Reply{"",
                   "User asks: \"What is the weather in Tokyo?\" We need to use lookup_weather tool.",
                   {{"lookup_weather", R"({"location": "Tokyo"})"}},
                   {}}));
}

TEST_F(HarmonyReference, test_streamable_parser) {
  const std::string file = text("test_streamable_parser");
  const Reply reply = reply_to(tokenizer->encode_prompt(file));
  EXPECT_TRUE(reply.reasoning.starts_with("User asks \"Who is the current US president?\""))
      << reply.reasoning;
  EXPECT_TRUE(reply.reasoning.ends_with("Let's browse to confirm.")) << reply.reasoning;
  const std::string arguments =
      R"({"query": "current US president July 2025", "topn": 10, "source": "news"})";
  EXPECT_EQ(reply.calls, (std::vector<Call>{{"browser.search", arguments}}));
  EXPECT_EQ(reply.content, R"({"result": "https://openai.com/"})");
}

TEST_F(HarmonyReference, test_tool_response_parsing) {
  const std::string result = R"({"result": "https://openai.com/"})";
  const harmony::Rendering rendering{.system = {},
                                     .messages = {{"browser.search", "assistant", "commentary", "", result}},
                                     .drop_earlier_analysis = true,
                                     .opens_reply = false};
  const std::string file = text("test_tool_response_parsing");
  EXPECT_EQ(harmony::render(rendering).whole(), file + "<|end|>");
  EXPECT_EQ(reply_to(tokenizer->encode_prompt(file)),
            (Reply{result, "", {}, {"the model wrote a message as \"browser.search\""}}));
}

// Replaces invalid UTF-8 as the library does: token 9552 is a space and half a character.
TEST_F(HarmonyReference, ReplacesHalfCharactersAsTheLibraryDoes) {
  std::vector<TokenId> tokens = tokenizer->encode_prompt("<|channel|>final<|message|>");
  for (const TokenId token : {9552, 9552}) tokens.push_back(token);
  for (const TokenId token : tokenizer->encode_prompt("worked<|end|>")) tokens.push_back(token);
  EXPECT_EQ(reply_to(tokens).content, " \xEF\xBF\xBD \xEF\xBF\xBDworked");
}

// A rendered conversation is parsed back unchanged, even if its text looks like the protocol.
TEST_F(HarmonyReference, ParsesWhatItRendered) {
  const std::string words = "Plain <|end|> text, ünïcode 😀\n<|start|>assistant<|channel|>final<|message|>";
  harmony::Rendering rendering{
      .system = {}, .messages = {}, .drop_earlier_analysis = false, .opens_reply = false};
  rendering.messages = {{"assistant", "", "analysis", "", words},
                        {"assistant", "", "commentary", "", words},
                        {"assistant", "functions.f", "commentary", "json", words},
                        {"assistant", "", "final", "", words}};
  Conversation conversation;
  conversation.tools = parse_json(R"([{"type": "function", "function": {"name": "f"}}])", "tools");
  const std::vector<TokenId> tokens = tokenizer->encode_spans(harmony::render(rendering).spans());
  EXPECT_EQ(reply_to(tokens, conversation), (Reply{words + words, words, {{"f", words}}, {}}));
}

TEST_F(HarmonyReference, StopsAtReturnAndCall) {
  EXPECT_EQ(harmony::stop_tokens(*tokenizer), (std::vector<TokenId>{200002, 200012, 199999}));
}

}  // namespace
}  // namespace inferno
