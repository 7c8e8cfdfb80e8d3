#include <gtest/gtest.h>

#include <functional>

#include "server/anthropic/messages_stream.h"
#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

constexpr const char* thinking_template =
    "{% for tool in tools or [] %}{{ tool.function.name }}: {{ tool.function.description }}\n{% endfor %}"
    "{% for message in messages %}[{{ message.role }}] {{ message.content }}\n{% endfor %}"
    "{% if enable_thinking is defined and not enable_thinking %}/quick{% endif %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

Json hello() {
  return Json::parse(R"({"model": "tiny", "max_tokens": 12, "seed": 7, "temperature": 0.8,
                         "messages": [{"role": "user", "content": "Hello"}]})");
}

Json with(Json body, const Json& fields) {
  body.update(fields);
  return body;
}

Json fields(const char* text) {
  return Json::parse(text);
}

class MessagesScene : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    thinking_ = tiny_model(thinking_template);
    plain_ = tiny_model(plain_template);
  }
  static void TearDownTestSuite() {
    thinking_.reset();
    plain_.reset();
  }

  Reply send(const Json& body) { return send_to(messages, body); }
  Reply send_to(const std::function<void(SharedCall)>& route, const Json& body) {
    CallOrigin origin;
    origin.dialect = Dialect::anthropic;
    return scene_.send(route, body, origin);
  }
  // The message of a 400.
  std::string refused(const char* more) {
    const Reply reply = send(with(hello(), fields(more)));
    EXPECT_EQ(reply.status, 400) << more << "\n" << reply.text;
    const Json body = reply.json();
    EXPECT_EQ(body.value("type", ""), "error") << reply.text;
    EXPECT_EQ(body.at("error").value("type", ""), "invalid_request_error");
    EXPECT_TRUE(body.value("request_id", "").starts_with("req_"));
    return body.at("error").value("message", "");
  }
  // x-inferno-ignored of an answer.
  std::string ignored(const char* more) {
    const Reply reply = send(with(hello(), fields(more)));
    EXPECT_EQ(reply.status, 200) << more << "\n" << reply.text;
    return reply.header("x-inferno-ignored");
  }

  static std::shared_ptr<const TextModel> thinking_, plain_;
  static ServerSettings settings() {
    ServerSettings settings;
    settings.names = {"tiny"};
    return settings;
  }
  ServerScene scene_{thinking_, settings()};
  ServerScene plain_scene_{plain_, settings()};
};
std::shared_ptr<const TextModel> MessagesScene::thinking_, MessagesScene::plain_;

int prompt_tokens(const Json& usage) {
  return usage.at("input_tokens").get<int>() + usage.at("cache_read_input_tokens").get<int>() +
         usage.at("cache_creation_input_tokens").get<int>();
}

TEST_F(MessagesScene, AnswersInAnthropicsShape) {
  const Reply reply = send(hello());
  ASSERT_EQ(reply.status, 200) << reply.text;
  const Json json = reply.json();
  EXPECT_TRUE(json.at("id").get<std::string>().starts_with("msg_"));
  EXPECT_EQ(json.at("type"), "message");
  EXPECT_EQ(json.at("role"), "assistant");
  EXPECT_EQ(json.at("model"), "tiny");
  EXPECT_TRUE(json.at("content").is_array());
  EXPECT_EQ(json.at("stop_reason"), "max_tokens");
  EXPECT_EQ(json.at("stop_sequence"), nullptr);
  EXPECT_EQ(json.at("usage").at("output_tokens"), 12);
  EXPECT_FALSE(json.contains("timings"));
  EXPECT_FALSE(json.contains("inferno"));
  EXPECT_EQ(reply.header("request-id"), reply.header("x-request-id"));
  EXPECT_EQ(reply.header("x-inferno-ignored"), "");
}

TEST_F(MessagesScene, StreamsTheSameAnswer) {
  const Json whole = send(hello()).json();
  const Reply reply = send(with(hello(), {{"stream", true}}));
  ASSERT_EQ(reply.status, 200);
  MessageSum sum;
  for (const Json& event : reply.events()) {
    sum.add(event);
    EXPECT_NE(reply.text.find("event: " + event.at("type").get<std::string>() + "\ndata: "),
              std::string::npos);
  }
  EXPECT_EQ(sum.message().at("content"), whole.at("content"));
  EXPECT_EQ(sum.message().at("stop_reason"), whole.at("stop_reason"));
  EXPECT_EQ(prompt_tokens(sum.message().at("usage")), prompt_tokens(whole.at("usage")));
  EXPECT_EQ(reply.events().back(), Json({{"type", "message_stop"}}));
}

TEST_F(MessagesScene, CountsTheTokensThatAnAnswerThenCounts) {
  for (const char* more :
       {"{}", R"({"system": "Be brief."})", R"({"thinking": {"type": "disabled"}})",
        R"({"tools": [{"name": "f", "description": "d", "input_schema": {"type": "object"}}]})",
        R"({"messages": [{"role": "user", "content": "A"}, {"role": "assistant", "content": "The"}]})"}) {
    Json body = with(hello(), fields(more));
    const Json usage = send(body).json().at("usage");
    body.erase("max_tokens");
    const Reply counted = send_to(count_tokens, body);
    ASSERT_EQ(counted.status, 200) << counted.text;
    EXPECT_EQ(counted.json(), Json({{"input_tokens", prompt_tokens(usage)}})) << more;
  }
}

TEST_F(MessagesScene, RequiresWhatAnthropicRequires) {
  for (const char* name : {"max_tokens", "messages"}) {
    Json body = hello();
    body.erase(name);
    const Reply reply = send(body);
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(reply.json().at("error").at("message"), std::string(name) + ": field required");
  }
  EXPECT_EQ(send(with(hello(), {{"model", "claude"}})).status, 404);
  EXPECT_EQ(send(with(hello(), {{"model", "claude"}})).json().at("error").at("type"), "not_found_error");
}

TEST_F(MessagesScene, RefusesValuesByName) {
  EXPECT_TRUE(refused(R"({"max_tokens": 0})").starts_with("max_tokens:"));
  EXPECT_TRUE(refused(R"({"max_tokens": "9"})").starts_with("max_tokens:"));
  EXPECT_TRUE(refused(R"({"temperature": 1.5})").starts_with("temperature:"));
  EXPECT_TRUE(refused(R"({"top_p": 2})").starts_with("top_p:"));
  EXPECT_TRUE(refused(R"({"top_k": -5})").starts_with("top_k:"));
  EXPECT_TRUE(refused(R"({"stop_sequences": "x"})").starts_with("stop_sequences:"));
  EXPECT_TRUE(refused(R"({"stop_sequences": ["a", ""]})").starts_with("stop_sequences[1]:"));
  EXPECT_TRUE(refused(R"({"system": 1})").starts_with("system:"));
  EXPECT_TRUE(refused(R"({"system": [{"type": "image"}]})").starts_with("system[0]:"));
  EXPECT_TRUE(refused(R"({"stream": "yes"})").starts_with("stream:"));
  EXPECT_TRUE(refused(R"({"thinking": true})").starts_with("thinking:"));
  EXPECT_TRUE(refused(R"({"thinking": {}})").starts_with("thinking.type:"));
  EXPECT_TRUE(refused(R"({"thinking": {"type": "hard"}})").starts_with("thinking.type:"));
  EXPECT_TRUE(refused(R"({"thinking": {"type": "enabled", "budget_tokens": "many"}})")
                  .starts_with("thinking.budget_tokens:"));
  EXPECT_TRUE(refused(R"({"output_config": {"effort": "huge"}})").starts_with("output_config.effort:"));
}

TEST_F(MessagesScene, RefusesWhatWouldChangeTheAnswer) {
  EXPECT_TRUE(refused(R"({"tool_choice": {"type": "any"}})").starts_with("/tool_choice/type: a call is req"));
  EXPECT_TRUE(refused(R"({"tool_choice": {"type": "tool"}})").starts_with("tool_choice.name:"));
  EXPECT_TRUE(refused(R"({"tool_choice": {"type": "some"}})").starts_with("tool_choice.type:"));
  EXPECT_TRUE(
      refused(R"({"output_config": {"format": {"type": "json_schema", "schema": {"uniqueItems": true}}}})")
          .starts_with("/output_config/format/schema/uniqueItems"));
  EXPECT_TRUE(refused(R"({"output_format": {"type": "json_schema"}})").starts_with("/output_format"));
  EXPECT_TRUE(
      refused(
          R"({"output_format": {"type": "json_object"}, "output_config": {"format": {"type": "json_object"}}})")
          .starts_with("/output_config/format: the answer is already constrained by /output_format"));
  EXPECT_TRUE(refused(R"({"mcp_servers": [{"url": "https://x"}]})").starts_with("mcp_servers"));
  const Json thread = send(with(hello(), fields(R"({"thread": {"type": "create"}})"))).json();
  EXPECT_EQ(thread.at("error").at("details").at("error_code"), "thread_unsupported_request");
}

TEST_F(MessagesScene, ConstrainsTheAnswer) {
  const Json format = fields(R"({"type": "json_schema", "schema": {"enum": ["yes", "no"]}})");
  for (const Json& more : {Json{{"output_format", format}}, Json{{"output_config", {{"format", format}}}}}) {
    const Reply reply = send(with(hello(), more));
    ASSERT_EQ(reply.status, 200) << reply.text;
    const std::string text = reply.json().at("content").at(0).at("text");
    EXPECT_TRUE(text == "\"yes\"" || text == "\"no\"") << text;
    EXPECT_EQ(reply.json().at("stop_reason"), "end_turn");
  }
}

TEST_F(MessagesScene, AcceptsWhatHasNoEffectAndNamesTheRest) {
  EXPECT_EQ(
      ignored(R"({"metadata": {"user_id": "u"}, "service_tier": "auto", "mcp_servers": [], "betas": ["x"],
                        "cache_control": {"type": "ephemeral"}, "tool_choice": {"type": "auto"},
                        "thinking": null})"),
      "");
  EXPECT_EQ(ignored(R"({"container": "c", "context_management": {"edits": []}, "speed": "fast"})"),
            "container, context_management, speed");
  EXPECT_EQ(ignored(R"({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}})"), "");
  EXPECT_EQ(ignored(R"({"thinking": {"type": "enabled", "budget_tokens": 1024}})"), "thinking.budget_tokens");
  EXPECT_EQ(ignored(R"({"thinking": {"type": "adaptive"}})"), "");
}

TEST_F(MessagesScene, LeavesOutAnthropicsOwnToolsAndNamesThem) {
  const Json none = send(hello()).json();
  const Reply reply = send(with(hello(), fields(R"({"tools": [
      {"type": "web_search_20250305", "name": "web_search", "max_uses": 5},
      {"type": "bash_20250124", "name": "bash"}]})")));
  EXPECT_EQ(reply.header("x-inferno-ignored"), "tools.web_search_20250305, tools.bash_20250124");
  EXPECT_EQ(prompt_tokens(reply.json().at("usage")), prompt_tokens(none.at("usage")));
  const Reply both = send(with(hello(), fields(R"({"tools": [
      {"type": "custom", "name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": false},
      {"name": "g", "description": null, "input_schema": {"type": "object"}, "defer_loading": true,
       "cache_control": {"type": "ephemeral"}, "eager_input_streaming": true, "allowed_callers": null}]})")));
  EXPECT_EQ(both.header("x-inferno-ignored"), "tools.defer_loading, tools.eager_input_streaming");
  EXPECT_GT(prompt_tokens(both.json().at("usage")), prompt_tokens(none.at("usage")));
}

TEST_F(MessagesScene, RefusesToolsThatAreMalformed) {
  EXPECT_EQ(refused(R"({"tools": [{"name": "f"}]})"), "tools[0].input_schema: field required");
  EXPECT_TRUE(refused(R"({"tools": [{"input_schema": {}}]})").starts_with("tools[0].name:"));
  EXPECT_TRUE(
      refused(R"({"tools": [{"name": "f", "input_schema": 1}]})").starts_with("tools[0].input_schema:"));
  EXPECT_TRUE(refused(R"({"tools": [{"name": "f", "input_schema": {}}, {"name": "f", "input_schema": {}}]})")
                  .starts_with("tools[1].name:"));
  EXPECT_TRUE(refused(R"({"tools": {}})").starts_with("tools:"));
}

TEST_F(MessagesScene, ShowsNoToolsWithToolChoiceNone) {
  const Json tools = fields(R"({"tools": [{"name": "f", "input_schema": {"type": "object"}}],
                                "tool_choice": {"type": "none"}})");
  EXPECT_EQ(prompt_tokens(send(with(hello(), tools)).json().at("usage")),
            prompt_tokens(send(hello()).json().at("usage")));
}

TEST_F(MessagesScene, SwitchesThinkingOffWhereTheTemplateCan) {
  const Json off = fields(R"({"thinking": {"type": "disabled"}})");
  EXPECT_GT(prompt_tokens(send(with(hello(), off)).json().at("usage")),
            prompt_tokens(send(hello()).json().at("usage")));
  CallOrigin origin;
  origin.dialect = Dialect::anthropic;
  const Reply reply = plain_scene_.send(messages, with(hello(), off), origin);
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("x-inferno-ignored"), "");
}

TEST_F(MessagesScene, ContinuesTheMessageOfTheAssistant) {
  Json body = hello();
  body["messages"].push_back({{"role", "assistant"}, {"content", "The"}});
  const Reply reply = send(body);
  EXPECT_EQ(reply.status, 200) << reply.text;
}

TEST_F(MessagesScene, AcceptsLaterInstructionsWhereTheTemplateRefusesThem) {
  const char* strict =
      "{% for message in messages %}{% if message.role == 'system' and not loop.first %}"
      "{{ raise_exception('System message must be at the beginning.') }}{% endif %}"
      "[{{ message.role }}] {{ message.content }}\n{% endfor %}";
  ServerScene scene(tiny_model(strict), settings());
  Json body = hello();
  body["messages"].push_back({{"role", "system"}, {"content", "Be brief."}});
  const Reply reply = scene.send(messages, body, {});
  EXPECT_EQ(reply.status, 200) << reply.text;
}

// As Claude Code 2.1 sends it, with shorter texts and fewer tools.
TEST_F(MessagesScene, AnswersTheRequestOfACodingAgent) {
  const Reply reply = send(with(hello(), fields(R"({
      "messages": [{"role": "user", "content": [{"type": "text", "text": "<system-reminder>\nToday is Monday.\n"},
                     {"type": "text", "text": "fix it", "cache_control": {"type": "ephemeral"}}]},
                   {"role": "system", "content": "Available agents: none"}],
      "system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.197.167; cc_entrypoint=cli;"},
                 {"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}],
      "tools": [{"name": "Bash", "description": "Runs a command", "input_schema": {"type": "object"}}],
      "metadata": {"user_id": "{\"device_id\":\"6c\"}"}, "thinking": {"type": "adaptive"},
      "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
      "output_config": {"effort": "high"}, "stream": true})")));
  ASSERT_EQ(reply.status, 200) << reply.text;
  EXPECT_EQ(reply.header("x-inferno-ignored"),
            "system.x-anthropic-billing-header, context_management, reasoning_effort");
  EXPECT_EQ(reply.events().front().at("type"), "message_start");
}

TEST_F(MessagesScene, TellsAgentsThatThePromptIsTooLong) {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "word ";
  Json body = hello();
  body["messages"][0]["content"] = text;
  const Reply reply = send(body);
  EXPECT_EQ(reply.status, 400);
  const std::string message = reply.json().at("error").at("message");
  EXPECT_TRUE(message.starts_with("prompt is too long: ")) << message;
  EXPECT_NE(message.find("> 256 maximum"), std::string::npos) << message;
  const Reply counted = send_to(count_tokens, body);
  EXPECT_EQ(counted.status, 200);
  EXPECT_GT(counted.json().at("input_tokens"), 400);
}

}  // namespace
}  // namespace inferno::server
