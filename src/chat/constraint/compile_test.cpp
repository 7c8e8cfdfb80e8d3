#include "chat/constraint/compile.h"

#include <gtest/gtest.h>

#include "chat/constraint/read_constraint.h"
#include "chat/json.h"
#include "chat/reply/tool_calls.h"
#include "chat/vocabulary_scene.h"

namespace inferno {
namespace {

using Pieces = std::vector<ReplyPiece>;

// Text in which [[…]] are control tokens.
Pieces pieces_of(std::string_view text) {
  Pieces pieces;
  while (!text.empty()) {
    const bool is_control = text.starts_with("[[");
    std::size_t end = is_control ? text.find("]]") : std::min(text.find("[["), text.size());
    while (is_control && text.substr(end + 1).starts_with("]]")) ++end;  // the name may end with a bracket
    pieces.push_back({is_control, std::string(is_control ? text.substr(2, end - 2) : text.substr(0, end))});
    text.remove_prefix(is_control ? end + 2 : end);
  }
  return pieces;
}

struct Scene {
  std::unique_ptr<Tokenizer> tokenizer;
  std::shared_ptr<const grammar::Vocabulary> vocabulary;
  ReplyShape shape;
  std::shared_ptr<const grammar::Grammar> grammar;

  Scene(std::unique_ptr<Tokenizer> given, ReplyShape form, const std::string& request)
      : tokenizer(std::move(given)),
        vocabulary(grammar::make_vocabulary(*tokenizer)),
        shape(std::move(form)),
        grammar(compile_reply(read_constraint(parse_json(request, "request")), shape, *tokenizer)) {}

  bool accepts(std::string_view reply) const {
    grammar::Matcher matcher(grammar, vocabulary);
    if (!begin_reply(matcher, shape, *tokenizer)) return false;
    ReplyShape rest;
    rest.begun = pieces_of(reply);
    return begin_reply(matcher, rest, *tokenizer) && matcher.may_end();
  }
};

Scene harmony(const std::string& request, Pieces begun = {}) {
  return {harmony_vocabulary(), {.kind = ReplyShape::Kind::channels, .begun = std::move(begun)}, request};
}

constexpr const char* weather =
    R"({"tools": [{"type": "function", "function": {"name": "f", "strict": true,
        "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false}}}])";

std::string weather_with(const std::string& fields) {
  return std::string(weather) + fields + "}";
}

TEST(HarmonyRules, ContinueAMessageThatThePromptBegan) {
  const Pieces inside = {{true, "<|channel|>"}, {false, "final"}, {true, "<|message|>"}, {false, "{\"a\""}};
  const Scene scene = harmony(R"({"json_object": true})", inside);
  EXPECT_TRUE(scene.accepts(":1}[[<|return|>]]"));
  EXPECT_FALSE(scene.accepts("{}[[<|return|>]]"));
  EXPECT_TRUE(
      harmony("{}", {{true, "<|channel|>"}, {false, "analysis"}, {true, "<|message|>"}})
          .accepts("x[[<|end|>]][[<|start|>]]assistant[[<|channel|>]]final[[<|message|>]]y[[<|return|>]]"));
}

TEST(HarmonyRules, ConstrainTheFinalMessageOnly) {
  const Scene scene = harmony(R"({"regex": "[a-z]+"})");
  EXPECT_TRUE(scene.accepts("[[<|channel|>]]final[[<|message|>]]abc[[<|return|>]]"));
  EXPECT_FALSE(scene.accepts("[[<|channel|>]]final[[<|message|>]]ABC[[<|return|>]]"));
  EXPECT_FALSE(scene.accepts("[[<|channel|>]]final json[[<|message|>]]abc[[<|return|>]]"));
  EXPECT_TRUE(
      scene.accepts("[[<|channel|>]]analysis[[<|message|>]]ABC[[<|end|>]]"
                    "[[<|start|>]]assistant[[<|channel|>]]final[[<|message|>]]a[[<|return|>]]"));
}

TEST(HarmonyRules, LetArgumentsBeAnyObjectIfTheirSchemaIsRefusedAndNotStrict) {
  const std::string tool = R"("name": "f", "parameters": {"type": "object", "unevaluatedItems": false})";
  const Scene scene = harmony(R"({"tools": [{"type": "function", "function": {)" + tool + "}}]}");
  EXPECT_EQ(scene.grammar->notes().size(), 1U);
  EXPECT_TRUE(scene.accepts(" to=functions.f[[<|channel|>]]commentary[[<|message|>]]{\"y\":[]}[[<|call|>]]"));
  try {
    harmony(R"({"tools": [{"type": "function", "function": {"strict": true, )" + tool + "}}]}");
    FAIL() << "a strict function needs a schema that can be enforced";
  } catch (const ConstraintError& error) {
    EXPECT_EQ(error.param(), "tools[0].function.parameters");
    EXPECT_EQ(error.refusal().pointer, "/tools/0/function/parameters/unevaluatedItems");
  }
}

// The reply of a model whose template has this source.
Scene text_reply(std::string_view source, const std::string& request, ReplyShape shape = {}) {
  shape.kind = ReplyShape::Kind::text;
  shape.syntax = tool_call_syntax(source);
  return {vocabulary_with({"<tool_call>", "</tool_call>", "<think>", "</think>", "[TOOL_CALLS]", "[ARGS]",
                           "<|python_tag|>", "<|tool_call|>", "<|/tool_call|>"}),
          std::move(shape), request};
}

TEST(TextReplyRules, LeaveReasoningFree) {
  const ReasoningTags tags = {"<think>", "</think>"};
  const Scene scene = text_reply("", R"({"choices": ["yes", "no"]})", {.tags = tags});
  EXPECT_TRUE(scene.accepts("yes"));
  EXPECT_TRUE(scene.accepts("[[<think>]]\nmaybe [[</think>]]\n\nno"));
  EXPECT_TRUE(scene.accepts("<think>maybe</think>no"));
  EXPECT_FALSE(scene.accepts("[[<think>]]maybe</think>maybe[[</think>]]no"));
  EXPECT_FALSE(scene.accepts("maybe"));
  const Scene inside = text_reply("", R"({"choices": ["yes", "no"]})",
                                  {.tags = tags, .begins = ReplyBegins::inside_reasoning});
  EXPECT_TRUE(inside.accepts("maybe[[</think>]]\n\nno"));
  EXPECT_FALSE(inside.accepts("no"));
}

TEST(TextReplyRules, ConstrainCallsInTheSyntaxOfEachFamily) {
  const std::string good = R"({"name": "f", "arguments": {"x": 1}})";
  const std::string bad = R"({"name": "f", "arguments": {"y": 1}})";
  struct Family {
    std::string_view source, before, after;
  };
  for (const Family& family :
       {Family{"<tool_call>", "[[<tool_call>]]\n", "\n[[</tool_call>]]"},
        Family{"<tool_call>", "<tool_call>", "</tool_call>"},
        Family{"[TOOL_CALLS]", "[[[TOOL_CALLS]]][", "]"}, Family{"<|tool_call|>", "[[<|tool_call|>]][", "]"},
        Family{"<|tool_call|>", "[[<|tool_call|>]][", "][[<|/tool_call|>]]"},
        Family{"functools", "functools[", "]"}}) {
    const Scene scene = text_reply(family.source, weather_with(R"(, "tool_choice": "required")"));
    const auto call = [&](const std::string& object) {
      return std::string(family.before) + object + std::string(family.after);
    };
    EXPECT_TRUE(scene.accepts(call(good))) << family.source;
    EXPECT_FALSE(scene.accepts(call(bad))) << family.source;
    EXPECT_FALSE(scene.accepts("Hello " + call(good))) << family.source;
    EXPECT_FALSE(scene.accepts("Hello")) << family.source;
    const Scene automatic = text_reply(family.source, weather_with(""));
    EXPECT_TRUE(automatic.accepts("Hello")) << family.source;
    EXPECT_TRUE(automatic.accepts("Hello " + call(good))) << family.source;
    EXPECT_FALSE(automatic.accepts("Hello " + call(bad))) << family.source;
  }
}

TEST(TextReplyRules, ConstrainNamedCallsOfMistralAndBareOnesOfLlama) {
  const Scene mistral = text_reply("[TOOL_CALLS]", weather_with(R"(, "tool_choice": "required")"));
  EXPECT_TRUE(mistral.accepts(R"([TOOL_CALLS]f[ARGS]{"x": 1})"));
  EXPECT_TRUE(mistral.accepts(R"([TOOL_CALLS]f[ARGS]{"x": 1}[TOOL_CALLS]f[ARGS]{"x": 2})"));
  EXPECT_TRUE(mistral.accepts(R"([TOOL_CALLS][{"name": "f", "arguments": {"x": 1}}])"));
  EXPECT_FALSE(mistral.accepts(R"([TOOL_CALLS]g[ARGS]{"x": 1})"));
  const Scene llama = text_reply("<|python_tag|>", weather_with(R"(, "tool_choice": "required")"));
  EXPECT_TRUE(llama.accepts(R"({"name": "f", "parameters": {"x": 1}})"));
  EXPECT_TRUE(llama.accepts(
      R"([[<|python_tag|>]]{"name": "f", "parameters": {"x": 1}}; {"name": "f", "parameters": {"x": 2}})"));
  EXPECT_FALSE(llama.accepts(R"({"name": "f", "parameters": {}})"));
}

TEST(TextReplyRules, AllowOneCallIfCallsAreNotParallel) {
  const std::string call = "[[<tool_call>]]{\"name\": \"f\", \"arguments\": {\"x\": 1}}[[</tool_call>]]";
  EXPECT_TRUE(text_reply("<tool_call>", weather_with("")).accepts(call + "\n" + call));
  const Scene single = text_reply("<tool_call>", weather_with(R"(, "parallel_tool_calls": false)"));
  EXPECT_TRUE(single.accepts(call));
  EXPECT_FALSE(single.accepts(call + "\n" + call));
}

TEST(TextReplyRules, AllowTheResponseFormatOrACall) {
  const Scene scene = text_reply("<tool_call>", weather_with(R"(, "regex": "[0-9]+")"));
  EXPECT_TRUE(scene.accepts("12"));
  EXPECT_TRUE(scene.accepts("[[<tool_call>]]{\"name\": \"f\", \"arguments\": {\"x\": 1}}[[</tool_call>]]"));
  EXPECT_FALSE(scene.accepts("twelve"));
}

TEST(TextReplyRules, RefuseToRequireACallThatTheTemplateCannotWrite) {
  EXPECT_THROW(text_reply("", weather_with(R"(, "tool_choice": "required")")), ConstraintError);
}

TEST(TextReplyRules, RefuseStrictFunctionsThatTheTemplateCannotCall) {
  try {
    text_reply("", weather_with(""));
    FAIL() << "nothing would make calls follow the schema";
  } catch (const ConstraintError& error) {
    EXPECT_EQ(error.param(), "tools[0].function.parameters");
  }
  ReplyConstraint constraint = read_constraint(parse_json(weather_with(""), "request"));
  constraint.functions[0].strict = false;
  EXPECT_FALSE(restricts(constraint, {.kind = ReplyShape::Kind::text}));
}

TEST(CacheKey, TellsConstraintsAndFormsApart) {
  const ReplyShape channels = {.kind = ReplyShape::Kind::channels};
  const ReplyConstraint a = read_constraint(Json{{"regex", "a"}}), b = read_constraint(Json{{"regex", "b"}});
  EXPECT_EQ(cache_key(a, channels), cache_key(a, channels));
  EXPECT_NE(cache_key(a, channels), cache_key(b, channels));
  EXPECT_NE(cache_key(a, channels), cache_key(a, {}));
}

}  // namespace
}  // namespace inferno
