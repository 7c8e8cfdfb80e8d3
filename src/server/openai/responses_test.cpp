#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

Reply ask(const std::string& body, const char* chat_template = tools_template) {
  static const auto plain = tiny_model(plain_template);
  static const auto with_tools = tiny_model(tools_template);
  ServerScene server(chat_template == plain_template ? plain : with_tools);
  return server.send(responses, body);
}

TEST(Responses, HaveTheMembersThatClientsRequire) {
  const Reply reply = ask(R"({"input": "Hi", "max_output_tokens": 4, "temperature": 0.7, "seed": 1,
                              "instructions": "Be brief.", "metadata": {"a": "b"}})");
  ASSERT_EQ(reply.status, 200) << reply.text;
  const Json response = reply.json();
  for (const char* name : {"id",           "object",
                           "created_at",   "status",
                           "error",        "incomplete_details",
                           "instructions", "model",
                           "output",       "parallel_tool_calls",
                           "temperature",  "tool_choice",
                           "tools",        "top_p",
                           "metadata",     "usage",
                           "text",         "reasoning",
                           "timings",      "inferno"}) {
    EXPECT_TRUE(response.contains(name)) << name;
  }
  EXPECT_TRUE(response.at("id").get<std::string>().starts_with("resp_"));
  EXPECT_EQ(response.at("temperature"), 0.7);
  EXPECT_EQ(response.at("instructions"), "Be brief.");
  EXPECT_EQ(response.at("metadata"), Json({{"a", "b"}}));
  EXPECT_EQ(response.at("max_output_tokens"), 4);
  EXPECT_EQ(response.at("usage").at("output_tokens"), 4);
  EXPECT_EQ(response.at("status"), "incomplete");
}

TEST(Responses, AreTheSameStreamed) {
  const Json whole = ask(R"({"input": "Hi", "max_output_tokens": 8, "seed": 1})").json();
  const Reply reply = ask(R"({"input": "Hi", "max_output_tokens": 8, "seed": 1, "stream": true})");
  EXPECT_EQ(reply.status, 200);
  const auto events = reply.events();
  ASSERT_FALSE(events.empty());
  const Json& last = events.back().at("response");
  ASSERT_EQ(last.at("output").size(), whole.at("output").size());
  for (std::size_t i = 0; i < last.at("output").size(); ++i) {
    EXPECT_EQ(last.at("output")[i].at("content"), whole.at("output")[i].at("content"));
  }
  EXPECT_EQ(last.at("usage").at("output_tokens"), whole.at("usage").at("output_tokens"));
  std::string text;
  for (const Json& event : events) {
    if (event.at("type") == "response.output_text.delta") text += event.at("delta").get<std::string>();
  }
  EXPECT_EQ(whole.at("output")[0].at("content")[0].at("text"), text);
}

TEST(Responses, HaveLogProbabilitiesOfTheWholeText) {
  const Json response = ask(R"({"input": "Hi", "max_output_tokens": 8, "seed": 1, "top_logprobs": 2,
                                "include": ["message.output_text.logprobs"]})")
                            .json();
  const Json& part = response.at("output")[0].at("content")[0];
  ASSERT_FALSE(part.at("logprobs").empty());
  std::string bytes;
  for (const Json& token : part.at("logprobs")) {
    EXPECT_EQ(token.at("top_logprobs").size(), 2u);
    for (const Json& byte : token.at("bytes")) bytes += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(part.at("text"), bytes);
}

TEST(Responses, NameWhatHasNoEffect) {
  const Reply reply = ask(R"({"input": "Hi", "max_output_tokens": 1, "truncation": "auto", "surprise": 1,
      "store": true, "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k",
      "client_metadata": {"a": "b"}, "text": {"verbosity": "low"}, "service_tier": "auto",
      "tools": [{"type": "function", "name": "f", "hint": 1}, {"type": "web_search"}]})");
  ASSERT_EQ(reply.status, 200) << reply.text;
  const std::string ignored = reply.header("x-inferno-ignored");
  for (const char* name : {"truncation", "surprise", "tools.hint", "tools[1].type=web_search"}) {
    EXPECT_NE(ignored.find(name), std::string::npos) << name << " in " << ignored;
  }
  for (const char* name :
       {"store", "include", "prompt_cache_key", "client_metadata", "verbosity", "service_tier"}) {
    EXPECT_EQ(ignored.find(name), std::string::npos) << name << " in " << ignored;
  }
  const Json response = reply.json();
  EXPECT_EQ(response.at("tools").size(), 1u);
  EXPECT_GE(response.at("inferno").at("warnings").size(), 2u);
}

TEST(Responses, RefuseByNameWhatWouldChangeTheAnswer) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {R"({})", "input"},
      {R"({"input": null})", "input"},
      {R"({"input": "Hi", "previous_response_id": "resp_1"})", "previous_response_id"},
      {R"({"input": "Hi", "conversation": "conv_1"})", "conversation"},
      {R"({"input": "Hi", "background": true})", "background"},
      {R"({"input": "Hi", "prompt": {"id": "pmpt_1"}})", "prompt"},
      {R"({"input": "Hi", "text": {"format": {"type": "json_schema", "name": "n"}}})", "text.format.schema"},
      {R"({"input": "Hi", "text": {"format": {}}})", "text.format.type"},
      {R"({"input": "Hi", "text": {"format": {"type": "json_schema", "name": "n",
          "schema": {"uniqueItems": true}}}})",
       "text.format.schema"},
      {R"({"input": "Hi", "text": {"format": {"type": "json_schema", "name": 1, "schema": {}}}})",
       "text.format.name"},
      {R"({"input": "Hi", "text": {"format": {"type": "yaml"}}})", "text.format.type"},
      {R"({"input": "Hi", "text": {"format": {"type": "json_object"}}, "grammar": "root ::= \"a\""})",
       "text.format"},
      {R"({"input": "Hi", "tool_choice": "required"})", "tool_choice"},
      {R"({"input": "Hi", "tool_choice": {"type": "function", "name": "f"}})", "tool_choice.name"},
      {R"({"input": "Hi", "tool_choice": {"type": "web_search"}})", "tool_choice.type"},
      {R"({"input": "Hi", "truncation": "some"})", "truncation"},
      {R"({"input": "Hi", "max_output_tokens": 0})", "max_output_tokens"},
      {R"({"input": "Hi", "reasoning": {"effort": "huge"}})", "reasoning.effort"},
      {R"({"input": "Hi", "metadata": {"a": 1}})", "metadata.a"},
      {R"({"input": "Hi", "stream_options": {}})", "stream_options"},
      {R"({"input": "Hi", "tools": [{"type": "function"}]})", "tools[0].name"},
      {R"({"input": "Hi", "instructions": 7})", "instructions"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_image"}]}]})", "input[0].content[0].type"},
  };
  for (const auto& [body, param] : cases) {
    const Reply reply = ask(body);
    EXPECT_EQ(reply.status, 400) << body << reply.text;
    EXPECT_EQ(reply.json().at("error").at("param"), param) << body;
  }
}

TEST(Responses, RefuseMoreTokensThanTheirLimit) {
  const Reply reply = ask(R"({"input": "Hi", "max_output_tokens": 4, "min_tokens": 5})");
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("param"), "min_tokens");
  EXPECT_EQ(ask(R"({"input": "Hi", "max_output_tokens": 4, "min_tokens": 4})").status, 200);
}

TEST(Responses, ConstrainTheText) {
  const Reply reply =
      ask(R"({"input": "Hi", "seed": 1, "text": {"format": {"type": "json_schema", "name": "word",
      "strict": true, "schema": {"enum": ["yes", "no"]}}}})");
  ASSERT_EQ(reply.status, 200) << reply.text;
  const std::string text = reply.json().at("output").back().at("content").at(0).at("text");
  EXPECT_TRUE(text == "\"yes\"" || text == "\"no\"") << text;
  EXPECT_EQ(reply.json().at("status"), "completed");
  EXPECT_EQ(reply.json().at("text").at("format"),
            Json::parse(R"({"type": "json_schema", "name": "word", "schema": {"enum": ["yes", "no"]},
                            "strict": true})"));
}

TEST(Responses, TakeFalseAndNullAsAbsent) {
  const Reply reply = ask(R"({"input": "Hi", "max_output_tokens": 1, "background": false, "stream": null,
      "previous_response_id": null, "conversation": null, "tools": [], "tool_choice": "none", "reasoning": null,
      "text": null, "metadata": null, "instructions": null, "truncation": "disabled", "include": []})");
  EXPECT_EQ(reply.status, 200) << reply.text;
  EXPECT_EQ(reply.header("x-inferno-ignored"), "");
}

TEST(Responses, RefuseAPromptBeyondTheContextBeforeAStreamBegins) {
  Json body = {{"input", ""}, {"stream", true}};
  for (int i = 0; i < 1000; ++i) body["input"] = body["input"].get<std::string>() + "word ";
  const Reply reply = ask(dumped(body));
  EXPECT_EQ(reply.status, 400);
  const Json error = reply.json().at("error");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_EQ(error.at("param"), "input");
}

TEST(Responses, RefuseToolsThatTheModelWouldNotSee) {
  const Reply reply = ask(R"({"input": "Hi", "tools": [{"type": "function", "name": "f"}]})", plain_template);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json().at("error").at("param"), "tools");
}

}  // namespace
}  // namespace inferno::server
