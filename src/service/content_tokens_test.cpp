// The tokens of the content: joined they are the content, whatever parsers and stop strings do to the text.
#include <gtest/gtest.h>

#include <random>

#include "chat/conversation.h"
#include "chat/make_chat_format.h"
#include "service/answer.h"
#include "text/tokenizer_scene.h"

namespace inferno {
namespace {

using Texts = std::vector<std::string>;

// All bytes, control tokens, and tokens of several characters, some across the borders of markup.
std::unique_ptr<Tokenizer> vocabulary() {
  std::string added;
  int id = 261;
  const auto add = [&](std::string_view text, bool is_control) {
    added += (added.empty() ? "" : ",") + std::string(R"({"id":)") + std::to_string(id++) +
             R"(,"content":")" + std::string(text) + R"(","special":)" + (is_control ? "true" : "false") +
             R"(,"normalized":false})";
  };
  for (const char* control :
       {"<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>", "<|im_end|>"}) {
    add(control, true);
  }
  for (const char* text :
       {"nk>\\n\\nHi", "thought</", "Hello", " wor", "ld!", "k<", "final", "<tool_", "call>"}) {
    add(text, false);
  }
  return parse_tokenizer(made_up_json({.added_tokens = "[" + added + "]"}), "made-up tokenizer.json");
}

constexpr std::string_view thinking =
    "{% for m in messages %}{{ m.role }}: {{ m.content }}<|im_end|>{% endfor %}"
    "{# <think> </think> #}{% if tools %}<tool_call>{% endif %}";
constexpr std::string_view channels =
    "{% for m in messages %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endfor "
    "%}<|start|>assistant";

class ContentTokens : public testing::Test {
 protected:
  ContentTokens() : tokenizer_(vocabulary()) {
    conversation_.messages = parse_json(R"([{"role": "user", "content": "?"}])", "messages");
    conversation_.tools = parse_json(R"([{"type": "function", "function": {"name": "f"}}])", "tools");
  }

  PreparedRequest request(std::string_view source) {
    PreparedRequest prepared;
    if (source.empty()) return prepared;
    ModelTemplates templates;
    templates.usual = TemplateSource{"chat_template.jinja", std::string(source), {}};
    const auto format = make_chat_format(*tokenizer_, templates);
    prepared.parsers.push_back(format->parser(conversation_));
    prepared.generation.stop_tokens = format->stop_tokens();
    return prepared;
  }

  // Reads the tokens and checks, after every one, that those given so far are the beginning of the text.
  Answer read(const std::vector<TokenId>& tokens, PreparedRequest prepared) {
    AnswerReader reader(*tokenizer_, prepared);
    std::string streamed;
    const auto take = [&](const Event& event) {
      const std::size_t before = reader.answer().content_tokens.size();
      reader.take(event);
      const auto& all = reader.answer().content_tokens;
      for (std::size_t i = before; i < all.size(); ++i) streamed += all[i].bytes;
      EXPECT_TRUE(reader.answer().text.starts_with(streamed)) << streamed;
    };
    for (const TokenId token : tokens) take(Sampled{.token = token, .logprob = -1.0f, .alternatives = {}});
    take(Finished{});
    EXPECT_EQ(streamed, reader.answer().text);
    for (const ContentToken& token : reader.answer().content_tokens) EXPECT_FALSE(token.bytes.empty());
    return std::move(reader.answer());
  }

  Texts texts(const Answer& answer) {
    Texts pieces;
    for (const ContentToken& token : answer.content_tokens) {
      const std::string whole(tokenizer_->bytes(token.sampled.token));
      pieces.push_back(token.bytes == whole ? whole : token.bytes + " of " + whole);
    }
    return pieces;
  }

  Texts pieces_of(const std::string& text, std::string_view source, Texts stops = {}) {
    PreparedRequest prepared = request(source);
    prepared.stops = std::move(stops);
    return texts(read(tokenizer_->encode_prompt(text), std::move(prepared)));
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  Conversation conversation_;
};

TEST_F(ContentTokens, AreThoseOfPlainText) {
  EXPECT_EQ(pieces_of("Hello world!", ""), (Texts{"Hello", " wor", "ld!"}));
  EXPECT_EQ(pieces_of("é", ""), (Texts{"\xC3", "\xA9"}));
}

TEST_F(ContentTokens, BeginAfterTheReasoning) {
  const Answer answer =
      read(tokenizer_->encode_prompt("<think>a thought</think>\n\nHi world!"), request(thinking));
  EXPECT_EQ(answer.text, "Hi world!");
  EXPECT_EQ(texts(answer), (Texts{"Hi of nk>\n\nHi", " wor", "ld!"}));
  EXPECT_EQ(answer.reasoning, "a thought");
  EXPECT_EQ(answer.reasoning_tokens, 3);  // "a", " " and "thought</"
}

TEST_F(ContentTokens, AreCutByAStopString) {
  EXPECT_EQ(pieces_of("Hello world!", "", {"wo"}), (Texts{"Hello", "  of  wor"}));
  EXPECT_EQ(pieces_of("Hello world!", "", {"lo w"}), (Texts{"Hel of Hello"}));
  EXPECT_EQ(pieces_of("Hello world!", thinking, {"orl"}), (Texts{"Hello", " w of  wor"}));
  EXPECT_EQ(pieces_of("Hello world!", "", {"world peace"}), (Texts{"Hello", " wor", "ld!"}));
}

TEST_F(ContentTokens, ContinueWhereMarkupWasOnlyBegun) {
  EXPECT_EQ(pieces_of("k<<tool", thinking), (Texts{"k<", "<", "t", "o", "o", "l"}));
  EXPECT_EQ(pieces_of(R"(k<tool_call>{"name": "f"}</tool_call>Hello)", thinking),
            (Texts{"k of k<", "Hello"}));
  EXPECT_EQ(pieces_of("<tool_call>Hello", thinking), (Texts{"<tool_", "call>", "Hello"}));
}

// Text in quotes, calls in brackets, in the order in which a client sees them.
std::string in_order(const std::vector<ReplyPart>& parts) {
  std::string order;
  for (const ReplyPart& part : parts) {
    if (const auto* content = std::get_if<ContentDelta>(&part)) order += "'" + content->text + "'";
    if (const auto* reasoning = std::get_if<ReasoningDelta>(&part)) order += "(" + reasoning->text + ")";
    if (const auto* call = std::get_if<ToolCallDelta>(&part))
      order += "[" + call->name + call->arguments + "]";
  }
  return order;
}

TEST_F(ContentTokens, ThatMayBeginAStopStringComeBeforeACall) {
  PreparedRequest prepared = request(thinking);
  prepared.stops = {"wo!"};
  AnswerReader reader(*tokenizer_, prepared);
  std::vector<ReplyPart> parts;
  const auto take = [&](const Event& event) {
    for (ReplyPart& part : reader.take(event)) parts.push_back(std::move(part));
  };
  const std::string reply = R"(wo<tool_call>{"name": "f", "arguments": {}}</tool_call>!)";
  for (const TokenId token : tokenizer_->encode_prompt(reply)) {
    take(Sampled{.token = token, .logprob = -1.0f, .alternatives = {}});
  }
  take(Finished{});
  const std::string order = in_order(parts);
  EXPECT_TRUE(order.starts_with("'wo'[f")) << order;
  EXPECT_TRUE(order.ends_with("]'!'")) << order;  // what follows a call completes no stop string
  EXPECT_FALSE(reader.is_stopped());
  EXPECT_EQ(reader.answer().text, "wo!");
  EXPECT_EQ(texts(reader.answer()), (Texts{"w", "o", "!"}));
  EXPECT_EQ(reader.answer().finish_reason, "tool_calls");
}

TEST_F(ContentTokens, AreThoseOfTheFinalChannel) {
  EXPECT_EQ(pieces_of("<|channel|>analysis<|message|>thought</<|end|><|start|>assistant<|channel|>final"
                      "<|message|>final Hello<|return|>",
                      channels),
            (Texts{"final", " ", "Hello"}));
  EXPECT_EQ(pieces_of("Hello world!", channels), (Texts{"Hello", " wor", "ld!"}));  // no header at all
}

TEST_F(ContentTokens, HaveTheCharacterThatReplacesInvalidBytes) {
  const auto byte = [&](char value) {
    for (TokenId id = 0; id < 261; ++id) {
      if (tokenizer_->bytes(id) == std::string_view(&value, 1)) return id;
    }
    return TokenId{-1};
  };
  const Answer answer = read({byte('a'), byte('\xC3'), byte('b'), byte('\xE2')}, {});
  EXPECT_EQ(answer.text,
            "a\xEF\xBF\xBD"
            "b\xEF\xBF\xBD");
  ASSERT_EQ(answer.content_tokens.size(), 4u);
  EXPECT_EQ(answer.content_tokens[1].sampled.token, byte('\xC3'));
  EXPECT_EQ(answer.content_tokens[3].sampled.token, byte('\xE2'));
}

TEST_F(ContentTokens, AreTheContentOfAnyTokens) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::vector<TokenId> tokens;
    const std::string markup = R"(<think></think><tool_call>{"name": "f", "arguments": {}}</tool_call>)";
    while (random() % 12 != 0) {
      if (random() % 3 == 0) {
        const std::size_t at = random() % markup.size();
        for (const TokenId token : tokenizer_->encode_prompt(markup.substr(at, random() % 30)))
          tokens.push_back(token);
      } else {
        tokens.push_back(static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer_->size())));
      }
    }
    PreparedRequest prepared = request(std::vector{std::string_view{}, thinking, channels}[random() % 3]);
    if (random() % 2 == 0) prepared.stops = {"wor", "nk", "\n"};
    read(tokens, std::move(prepared));
  }
}

}  // namespace
}  // namespace inferno
