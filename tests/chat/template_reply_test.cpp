// Public templates in both directions: the parser of a family must recognise the tool calls that its template
// writes into the history of a conversation. The templates are in ../shared/reference/chat.
#include <gtest/gtest.h>

#include "chat/conversation.h"
#include "chat/make_chat_format.h"
#include "chat/reply/tool_calls.h"
#include "chat/vocabulary_scene.h"
#include "reference.h"
#include "support/replies.h"

namespace inferno {
namespace {

using testing::Call;
using testing::Reply;

struct Family {
  const char* name;     // of the template
  const char* markers;  // expected in replies
  bool renders = true;  // the template writes calls as the model would
};

void PrintTo(const Family& family, std::ostream* out) {
  *out << family.name;
}

class TemplateReply : public ::testing::TestWithParam<Family> {
 protected:
  void SetUp() override {
    if (!reference::chat_folder())
      GTEST_SKIP() << "the shared reference folder (../shared/reference/chat) is absent";
    source_ = reference::read_file(*reference::chat_folder() / (std::string(GetParam().name) + ".jinja"));
    ASSERT_FALSE(source_.empty());
  }
  std::string source_;
};

Conversation weather(bool answered) {
  Conversation conversation;
  conversation.messages = parse_json(R"([{"role": "user", "content": "Weather in Paris?"}])", "messages");
  conversation.tools =
      parse_json(R"([{"type": "function", "function": {"name": "get_weather", "description": "Weather.",
      "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}])",
                 "tools");
  conversation.add_generation_prompt = !answered;
  if (answered) {
    conversation.messages.push_back(
        parse_json(R"({"role": "assistant", "content": "", "tool_calls": [{"id": "call12345",
        "type": "function", "function": {"name": "get_weather", "arguments": "{\"city\": \"Paris\"}"}}]})",
                   "call"));
  }
  return conversation;
}

TEST_P(TemplateReply, FindsTheMarkersOfItsFamily) {
  std::string markers;
  for (const std::string_view marker : tool_call_syntax(source_).opens) markers += std::string(marker) + " ";
  EXPECT_EQ(markers, GetParam().markers);
}

TEST_P(TemplateReply, ParsesTheCallThatTheTemplateWrites) {
  if (!GetParam().renders) return;
  const auto tokenizer =
      vocabulary_with({"<s>", "</s>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "<|eom_id|>"});
  ModelTemplates templates;
  templates.usual = TemplateSource{GetParam().name, source_, {{"bos_token", "<s>"}, {"eos_token", "</s>"}}};
  const auto format = make_chat_format(*tokenizer, templates);
  const std::string prompt = format->render(weather(false)).text;
  const std::string answered = format->render(weather(true)).text;
  ASSERT_TRUE(answered.starts_with(prompt)) << prompt << "\n---\n" << answered;
  const auto tokens = tokenizer->encode_prompt(answered.substr(prompt.size()));
  const Reply reply = testing::parse(*format->parser(weather(false)), tokens);
  EXPECT_EQ(reply.calls, (std::vector<Call>{{"get_weather", R"({"city": "Paris"})"}}))
      << answered.substr(prompt.size());
  EXPECT_EQ(reply.warnings, std::vector<std::string>{});
}

const Family families[] = {
    {"Qwen-Qwen2.5-7B-Instruct", "<tool_call> "},
    {"Qwen-Qwen3-0.6B", "<tool_call> "},
    {"NousResearch-Hermes-2-Pro-Llama-3-8B-tool_use", "<tool_call> "},
    {"NousResearch-Hermes-3-Llama-3.1-8B-tool_use", "<tool_call> "},
    {"ibm-granite-granite-4.0", "<tool_call> "},
    {"ibm-granite-granite-3.3-2B-Instruct", "<|tool_call|> ", false},
    {"meta-llama-Llama-3.1-8B-Instruct", "<|python_tag|> "},
    {"meta-llama-Llama-3.2-3B-Instruct", "<|python_tag|> "},
    {"mistralai-Mistral-Nemo-Instruct-2407", "[TOOL_CALLS] "},
    {"unsloth-mistral-Devstral-Small-2507", "[TOOL_CALLS] "},
    {"mistralai-Ministral-3-14B-Reasoning-2512", "[TOOL_CALLS] "},
};

INSTANTIATE_TEST_SUITE_P(Reference, TemplateReply, ::testing::ValuesIn(families), [](const auto& instance) {
  std::string name = instance.param.name;
  for (char& letter : name) {
    if (std::isalnum(static_cast<unsigned char>(letter)) == 0) letter = '_';
  }
  return name;
});

}  // namespace
}  // namespace inferno
