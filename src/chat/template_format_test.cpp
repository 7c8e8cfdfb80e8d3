#include "chat/template_format.h"

#include <gtest/gtest.h>

#include "chat/conversation.h"
#include "chat/make_chat_format.h"
#include "chat/vocabulary_scene.h"
#include "support/caught_error.h"
#include "support/replies.h"

namespace inferno {
namespace {

using testing::Call;
using testing::Reply;

Conversation saying(const std::string& messages, const std::string& tools = "null") {
  Conversation conversation;
  conversation.messages = parse_json(messages, "messages");
  conversation.tools = parse_json(tools, "tools");
  return conversation;
}

const std::string hello = R"([{"role": "user", "content": "Hi <|im_end|>"}])";
const std::string function_f = R"([{"type": "function", "function": {"name": "f"}}])";
const std::string chatml =
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

std::unique_ptr<ChatFormat> format_of(const Tokenizer& tokenizer, const std::string& source,
                                      const ChatOptions& options = {}) {
  return make_chat_format(
      tokenizer,
      {.usual = TemplateSource{"chat_template.jinja", source, {}}, .with_tools = {}, .model_texts = {}},
      options);
}

Reply reply_in(const ChatFormat& format, const Tokenizer& tokenizer, const Conversation& conversation,
               std::string_view text) {
  return testing::parse(*format.parser(conversation), tokenizer.encode_prompt(text));
}

TEST(TemplateFormat, KeepsUserTextFromForgingControlTokens) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  const TokenId end = *tokenizer->special("<|im_end|>");
  const Prompt prompt = format_of(*tokenizer, chatml)->render(saying(hello));
  EXPECT_EQ(prompt.text, "<|im_start|>user\nHi <|im_end|><|im_end|>\n<|im_start|>assistant\n");
  EXPECT_EQ(tokenizer->decode(prompt.tokens), prompt.text);
  EXPECT_EQ(std::count(prompt.tokens.begin(), prompt.tokens.end(), end), 1);
  ChatOptions as_hugging_face;
  as_hugging_face.allow_control_tokens_in_user_text = true;
  const Prompt parity = format_of(*tokenizer, chatml, as_hugging_face)->render(saying(hello));
  EXPECT_EQ(parity.tokens, tokenizer->encode_prompt(prompt.text));
  EXPECT_EQ(std::count(parity.tokens.begin(), parity.tokens.end(), end), 2);
}

TEST(TemplateFormat, PassesConversationsInTheFormThatTemplatesExpect) {
  const Conversation conversation = saying(
      R"([{"role": "developer", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                 {"role": "assistant", "reasoning": "why", "tool_calls": [{"function": {"name": "f", "arguments": "{\"x\": 1}"}},
                                                                       {"function": {"name": "g", "arguments": "not json"}}]}])");
  const Json variables = template_variables(conversation, "{{ message.reasoning_content }}");
  const Json& messages = variables.at("messages");
  EXPECT_EQ(messages[0].at("role"), "system");
  EXPECT_EQ(messages[0].at("content"), "a\nb");
  EXPECT_EQ(messages[1].at("reasoning_content"), "why");
  EXPECT_FALSE(messages[1].contains("thinking"));
  EXPECT_EQ(messages[1].at("tool_calls")[0].at("function").at("arguments"), Json({{"x", 1}}));
  EXPECT_EQ(messages[1].at("tool_calls")[1].at("function").at("arguments"), "not json");
  EXPECT_TRUE(variables.at("tools").is_null());
  EXPECT_EQ(template_variables(conversation, "developer").at("messages")[0].at("role"), "developer");
}

TEST(TemplateFormat, StopsAtTheTokenThatEndsATurnInTheTemplate) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>", "<|other|>"});
  EXPECT_EQ(format_of(*tokenizer, chatml)->stop_tokens(), std::vector{*tokenizer->special("<|im_end|>")});
}

TEST(TemplateFormat, FindsReasoningAndCallsInReplies) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>", "<think>", "</think>"});
  const std::string source = chatml + "{% if tools %}<tool_call>{% endif %}{# </think> #}";
  const auto format = format_of(*tokenizer, source);
  const std::string text =
      "<think>\nHm.\n</think>\n\nOk. <tool_call>\n{\"name\": \"f\", \"arguments\": "
      "{}}\n</tool_call><|im_end|>";
  EXPECT_EQ(reply_in(*format, *tokenizer, saying(hello, function_f), text),
            (Reply{"Ok. ", "Hm.", {{"f", "{}"}}, {}}));
  EXPECT_EQ(reply_in(*format, *tokenizer, saying(hello), text),
            (Reply{"Ok. <tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>", "Hm.", {}, {}}));
}

TEST(TemplateFormat, NoticesThatThePromptOpenedTheReasoning) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  const auto format =
      format_of(*tokenizer, chatml + "{% if enable_thinking is not false %}<think>\n{% endif %}");
  Conversation conversation = saying(hello);
  EXPECT_EQ(reply_in(*format, *tokenizer, conversation, "Hm.</think>Yes."), (Reply{"Yes.", "Hm.", {}, {}}));
  conversation.variables = {{"enable_thinking", false}};
  EXPECT_EQ(reply_in(*format, *tokenizer, conversation, "Yes."), (Reply{"Yes.", "", {}, {}}));
}

TEST(TemplateFormat, ParsesChannelsIfTheVocabularyHasHarmonysTokens) {
  const auto tokenizer = harmony_vocabulary();
  ASSERT_FALSE(is_o200k_harmony(*tokenizer));
  const std::string source =
      "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor "
      "%}<|start|>assistant";
  const auto format = format_of(*tokenizer, source);
  EXPECT_EQ(format->name(), "chat_template.jinja");
  EXPECT_EQ(format->render(saying(hello)).text,
            "<|start|>user<|message|>Hi <|im_end|><|end|><|start|>assistant");
  EXPECT_EQ(
      reply_in(
          *format, *tokenizer, saying(hello, function_f),
          "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.f<|channel|>commentary "
          "json<|message|>{}<|call|>"),
      (Reply{"", "Hm.", {{"f", "{}"}}, {}}));
  EXPECT_EQ(reply_in(*format, *tokenizer, saying(hello), "Hello you.").content, "Hello you.");
  const auto opened = format_of(*tokenizer, source + "<|channel|>final<|message|>");
  EXPECT_EQ(reply_in(*opened, *tokenizer, saying(R"([{"role": "user", "content": "<|start|>"}])"),
                     "Hello.<|return|>"),
            (Reply{"Hello.", "", {}, {}}));
}

TEST(TemplateFormat, LeavesOtherControlTokensOutOfTheText) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>", "<|other|>"});
  const auto format = format_of(*tokenizer, chatml);
  EXPECT_EQ(reply_in(*format, *tokenizer, saying(hello), "a<|other|>b<|im_end|>"), (Reply{"ab", "", {}, {}}));
  EXPECT_EQ(testing::parse(*format->parser(saying(hello)), std::vector<TokenId>{-1, 1 << 30}).warnings.size(),
            2u);
}

TEST(TemplateFormat, UsesTheToolTemplateForConversationsWithTools) {
  const auto tokenizer = vocabulary_with({});
  const auto format = make_chat_format(*tokenizer, {.usual = TemplateSource{"a", "plain", {}},
                                                    .with_tools = TemplateSource{"b", "tools", {}},
                                                    .model_texts = {}});
  EXPECT_EQ(format->render(saying(hello)).text, "plain");
  EXPECT_EQ(format->render(saying(hello, function_f)).text, "tools");
}

Conversation continuing(const std::string& content) {
  Conversation conversation = saying(hello);
  conversation.messages.push_back({{"role", "assistant"}, {"content", content}});
  conversation.continue_final_message = true;
  return conversation;
}

TEST(TemplateFormat, EndsThePromptInsideAMessageThatIsContinued) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  const auto text = [&](const std::string& source, const std::string& content) {
    const std::string whole = format_of(*tokenizer, source)->render(continuing(content)).text;
    return whole.substr(whole.rfind("<|im_start|>"));
  };
  EXPECT_EQ(text(chatml, "I say"), "<|im_start|>assistant\nI say");
  EXPECT_EQ(text(chatml, "I say "), "<|im_start|>assistant\nI say ");
  EXPECT_EQ(text(chatml, ""), "<|im_start|>assistant\n");
  std::string trimming = chatml;
  trimming.replace(trimming.find("m.content"), 9, "m.content | trim");
  EXPECT_EQ(text(trimming, "I say "), "<|im_start|>assistant\nI say");
  const auto refusal = [&](Conversation conversation, const std::string& source) {
    return caught_error([&] { format_of(*tokenizer, source)->render(conversation); }).kind();
  };
  Conversation conversation = continuing("I say");
  EXPECT_EQ(refusal(conversation, "{{ messages[0].content }}"), ErrorKind::unsupported);
  conversation.messages.back()["tool_calls"] = parse_json(function_f, "calls");
  EXPECT_EQ(refusal(conversation, chatml), ErrorKind::invalid_request);
  conversation.messages.erase(1);
  EXPECT_EQ(refusal(conversation, chatml), ErrorKind::invalid_request);
}

TEST(TemplateFormat, ParsesAReplyThatContinuesAMessage) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  const auto format = format_of(*tokenizer, chatml + "{# <think> </think> #}");
  EXPECT_EQ(reply_in(*format, *tokenizer, continuing("I say"), "<think> is a tag"),
            (Reply{"<think> is a tag", "", {}, {}}));
  EXPECT_EQ(reply_in(*format, *tokenizer, continuing("<think>Hm"), "mm.</think>Yes."),
            (Reply{"Yes.", "mm.", {}, {}}));
}

TEST(ChatFormat, KnowsWhetherItsPromptsShowTools) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  EXPECT_FALSE(shows_tools(*format_of(*tokenizer, chatml)));
  EXPECT_TRUE(shows_tools(*format_of(*tokenizer, "{{ tools | tojson }}" + chatml)));
}

TEST(ChatFormat, TellsThatAPromptIsTooLong) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  const auto format = format_of(*tokenizer, chatml);
  const std::size_t tokens = format->render(saying(hello)).tokens.size();
  EXPECT_EQ(format->render(saying(hello), tokens).tokens.size(), tokens);
  EXPECT_FALSE(format->render(saying(hello), tokens).is_too_long);
  EXPECT_TRUE(format->render(saying(hello), tokens - 1).is_too_long);
}

TEST(ChatFormat, ChoosesTheDefaultOfAFamilyOrNone) {
  const auto granite = vocabulary_with({"<|start_of_role|>", "<|end_of_role|>"});
  const auto format =
      make_chat_format(*granite, {.usual = {}, .with_tools = {}, .model_texts = {{"eos_token", "!"}}});
  ASSERT_NE(format, nullptr);
  EXPECT_EQ(format->name(), "default template of granite");
  EXPECT_EQ(format->render(saying(hello)).text,
            "<|start_of_role|>user<|end_of_role|>Hi <|im_end|>!\n<|start_of_role|>assistant<|end_of_role|>");
  EXPECT_EQ(make_chat_format(*vocabulary_with({"<|endoftext|>"}), {}), nullptr);
  EXPECT_EQ(make_chat_format(*harmony_vocabulary(), {}), nullptr);  // Harmony's tokens with other ids
}

TEST(ChatFormat, NamesTheMalformedFieldOfAConversation) {
  const auto tokenizer = vocabulary_with({"<|im_start|>", "<|im_end|>"});
  const auto format = format_of(*tokenizer, chatml);
  EXPECT_EQ(std::string(caught_error([&] { format->render(saying("[{}]")); }).what()),
            "messages[0]: expected an object with a \"role\"");
  EXPECT_EQ(caught_error([&] { format->render(saying(hello, "{}")); }).kind(), ErrorKind::invalid_request);
}

}  // namespace
}  // namespace inferno
