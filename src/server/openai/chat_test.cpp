#include <gtest/gtest.h>

#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

Json hello() {
  return Json::parse(
      R"({"messages":[{"role":"user","content":"Hello"}],"seed":7,"max_tokens":12,"temperature":0.8})");
}

Json with(Json body, const Json& fields) {
  body.update(fields);
  return body;
}

class ChatScene : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = tiny_model(tools_template); }
  static void TearDownTestSuite() { model_.reset(); }

  Reply send(const Json& body) { return scene_.send(chat_completions, body); }

  // The field that a 400 names.
  std::string refused(const Json& fields) {
    const Reply reply = send(with(hello(), fields));
    EXPECT_EQ(reply.status, 400) << reply.text;
    const Json error = reply.json().value("error", Json::object());
    for (const char* key : {"message", "type", "param", "code"})
      EXPECT_TRUE(error.contains(key)) << reply.text;
    return error.value("param", Json()).is_string() ? error["param"].get<std::string>() : "";
  }

  static std::shared_ptr<const TextModel> model_;
  ServerScene scene_{model_};
};
std::shared_ptr<const TextModel> ChatScene::model_;

// The texts of a stream's chunks, by index.
std::vector<std::string> streamed_contents(const std::vector<Json>& events, std::size_t answers) {
  std::vector<std::string> texts(answers);
  for (const Json& event : events) {
    if (!event.is_object()) continue;
    for (const Json& choice : event.at("choices")) {
      texts.at(choice.at("index").get<std::size_t>()) += choice.at("delta").value("content", "");
    }
  }
  return texts;
}

TEST_F(ChatScene, AnswersInOpenAIsShape) {
  const Reply reply = send(hello());
  ASSERT_EQ(reply.status, 200) << reply.text;
  const Json json = reply.json();
  EXPECT_TRUE(json.at("id").get<std::string>().starts_with("chatcmpl-"));
  EXPECT_EQ(json.at("object"), "chat.completion");
  EXPECT_EQ(json.at("model"), "builtin");
  EXPECT_TRUE(json.at("created").is_number_integer());
  EXPECT_TRUE(json.at("system_fingerprint").is_string());
  EXPECT_EQ(json.at("service_tier"), "default");
  const Json& choice = json.at("choices").at(0);
  EXPECT_EQ(choice.at("index"), 0);
  EXPECT_EQ(choice.at("logprobs"), nullptr);
  EXPECT_EQ(choice.at("message").at("role"), "assistant");
  EXPECT_TRUE(choice.at("message").at("content").is_string());
  EXPECT_EQ(choice.at("message").at("refusal"), nullptr);
  const Json& usage = json.at("usage");
  EXPECT_EQ(usage.at("completion_tokens"), 12);
  EXPECT_EQ(usage.at("total_tokens").get<int>(), usage.at("prompt_tokens").get<int>() + 12);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(json.at("timings").at("predicted_n"), 12);
  EXPECT_EQ(json.at("inferno").at("seed"), 7);
}

TEST_F(ChatScene, StreamsTheSameAnswer) {
  const std::string whole = send(hello()).json().at("choices").at(0).at("message").at("content");
  const Reply reply = send(with(hello(), {{"stream", true}}));
  const std::vector<Json> events = reply.events();
  ASSERT_GT(events.size(), 3u) << reply.text;
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_EQ(streamed_contents(events, 1).front(), whole);
  const Json& first = events.front();
  EXPECT_EQ(first.at("object"), "chat.completion.chunk");
  EXPECT_EQ(first.at("choices").at(0).at("delta").at("role"), "assistant");
  EXPECT_FALSE(first.contains("usage"));
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(events[i].at("id"), first.at("id"));
    EXPECT_EQ(events[i].at("created"), first.at("created"));
    const bool is_last = i + 2 == events.size();
    EXPECT_EQ(events[i].at("choices").at(0).at("finish_reason").is_null(), !is_last);
    EXPECT_EQ(events[i].contains("timings"), is_last);
    EXPECT_EQ(events[i].contains("inferno"), is_last);
  }
}

TEST_F(ChatScene, SendsUsageInALastChunkIfAsked) {
  const auto events =
      send(with(hello(), {{"stream", true}, {"stream_options", {{"include_usage", true}}}})).events();
  ASSERT_GT(events.size(), 3u);
  for (std::size_t i = 0; i + 2 < events.size(); ++i) EXPECT_EQ(events[i].at("usage"), nullptr);
  const Json& last = events[events.size() - 2];
  EXPECT_EQ(last.at("choices"), Json::array());
  EXPECT_EQ(last.at("usage").at("completion_tokens"), 12);
  EXPECT_TRUE(last.contains("timings"));
}

TEST_F(ChatScene, CountsWhileItStreamsIfAsked) {
  const Json options = {{"include_usage", true}, {"continuous_usage_stats", true}};
  const auto events = send(with(hello(), {{"stream", true}, {"stream_options", options}})).events();
  EXPECT_EQ(events.front().at("usage").at("completion_tokens"), 0) << "the role";
  int last = 0;
  for (const Json& event : events) {
    if (!event.is_object()) continue;
    const int tokens = event.at("usage").at("completion_tokens").get<int>();
    EXPECT_GE(tokens, last);
    last = tokens;
  }
  EXPECT_EQ(last, 12);
}

TEST_F(ChatScene, GivesSeveralAnswersInterleaved) {
  const Json body = with(hello(), {{"n", 3}});
  const Json whole = send(body).json();
  ASSERT_EQ(whole.at("choices").size(), 3u);
  EXPECT_EQ(whole.at("usage").at("completion_tokens"), 36);
  const auto streamed = streamed_contents(send(with(body, {{"stream", true}})).events(), 3);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(whole.at("choices").at(i).at("index"), i);
    EXPECT_EQ(whole.at("choices").at(i).at("message").at("content"), streamed[i]);
  }
  EXPECT_NE(streamed[0], streamed[1]);
}

// The bytes of all tokens, as text.
std::string joined(const Json& tokens) {
  std::string bytes;
  for (const Json& token : tokens) {
    EXPECT_EQ(token.at("top_logprobs").size(), 2u);
    for (const Json& byte : token.at("bytes")) bytes += static_cast<char>(byte.get<int>());
  }
  return bytes;
}

TEST_F(ChatScene, GivesTheLogProbabilitiesOfTheContent) {
  const Json body = with(hello(), {{"logprobs", true}, {"top_logprobs", 2}});
  const Json choice = send(body).json().at("choices").at(0);
  const Json tokens = choice.at("logprobs").at("content");
  EXPECT_EQ(choice.at("logprobs").at("refusal"), nullptr);
  EXPECT_EQ(joined(tokens), choice.at("message").at("content"));
  Json streamed = Json::array();
  for (const Json& event : send(with(body, {{"stream", true}})).events()) {
    if (!event.is_object() || event.at("choices").at(0).at("logprobs").is_null()) continue;
    for (const Json& token : event.at("choices").at(0).at("logprobs").at("content"))
      streamed.push_back(token);
  }
  EXPECT_EQ(streamed, tokens);
}

TEST_F(ChatScene, TellsWhereThePrefixDiffersFromEarlierOnes) {
  const auto ask = [&](const std::string& text) {
    const Json messages = Json::array({{{"role", "user"}, {"content", std::string(100, 'a') + text}}});
    return send(with(hello(), {{"messages", messages}})).json();
  };
  EXPECT_EQ(ask("one").at("inferno").at("prefix_match").at("tokens"), 0);
  const Json second = ask("two");
  const Json& match = second.at("inferno").at("prefix_match");
  EXPECT_GT(match.at("tokens"), 0);
  EXPECT_EQ(match.at("tokens"), second.at("usage").at("prompt_tokens_details").at("cached_tokens"));
  EXPECT_FALSE(match.at("next").get<std::string>().empty());
}

TEST_F(ChatScene, StopsBeforeAStopString) {
  const std::string whole = send(hello()).json().at("choices").at(0).at("message").at("content");
  const std::string stop = whole.substr(whole.size() / 2, 1);
  const Json choice = send(with(hello(), {{"stop", {stop}}})).json().at("choices").at(0);
  EXPECT_EQ(choice.at("message").at("content"), whole.substr(0, whole.find(stop)));
  EXPECT_EQ(choice.at("finish_reason"), "stop");
}

TEST_F(ChatScene, RefusesByNameWhatItCannotDo) {
  EXPECT_EQ(refused({{"response_format", {{"type", "yaml"}}}}), "response_format.type");
  EXPECT_EQ(refused({{"response_format",
                      {{"type", "json_schema"}, {"json_schema", {{"schema", {{"uniqueItems", true}}}}}}}}),
            "response_format.json_schema.schema");
  EXPECT_EQ(refused({{"grammar", "root ::= \"a\""}, {"guided_regex", "a"}}), "guided_regex");
  EXPECT_EQ(refused({{"guided_regex", "("}}), "guided_regex");
  EXPECT_EQ(refused({{"guided_choice", Json::array()}}), "guided_choice");
  EXPECT_EQ(refused({{"response_format", Json::object()}}), "response_format.type");
  EXPECT_EQ(refused({{"structured_outputs", {{"regexp", "a"}}}}), "structured_outputs.regexp");
  EXPECT_EQ(refused({{"guided_whitespace_pattern", " "}}), "guided_whitespace_pattern");
  EXPECT_EQ(refused({{"format", "yaml"}}), "format");
  EXPECT_EQ(refused({{"json_schema", Json::array()}}), "json_schema");
  EXPECT_EQ(refused({{"tool_choice", "required"}}), "tool_choice");  // no tools are offered
  EXPECT_EQ(refused({{"tool_choice", {{"type", "function"}, {"function", {{"name", "f"}}}}}}),
            "tool_choice.function.name");
  EXPECT_EQ(refused({{"functions", {{{"name", "f"}}}}}), "functions");
  EXPECT_EQ(refused({{"function_call", {{"name", "f"}}}}), "function_call");
  EXPECT_EQ(refused({{"prompt_logprobs", 0}}), "prompt_logprobs");
  EXPECT_EQ(refused({{"modalities", {"text", "audio"}}}), "modalities");
  EXPECT_EQ(refused({{"audio", {{"voice", "alloy"}}}}), "audio");
  EXPECT_EQ(refused({{"prediction", {{"type", "content"}}}}), "prediction");
  EXPECT_EQ(refused({{"web_search_options", Json::object()}}), "web_search_options");
  EXPECT_EQ(refused({{"stream_options", {{"include_usage", true}}}}), "stream_options");
  EXPECT_EQ(refused({{"top_logprobs", 2}}), "top_logprobs");
  EXPECT_EQ(refused({{"logprobs", 2}}), "logprobs");
  EXPECT_EQ(refused({{"logprobs", true}, {"top_logprobs", 21}}), "top_logprobs");
  EXPECT_EQ(refused({{"n", 0}}), "n");
  EXPECT_EQ(refused({{"n", 129}}), "n");
  EXPECT_EQ(refused({{"messages", Json::array()}}), "messages");
  EXPECT_EQ(refused({{"messages", nullptr}}), "messages");
  EXPECT_EQ(refused({{"messages", "hi"}}), "messages");
}

TEST_F(ChatScene, NamesTheMessageThatIsWrong) {
  const auto message = [&](const char* text) { return refused({{"messages", {Json::parse(text)}}}); };
  EXPECT_EQ(message("1"), "messages[0]");
  EXPECT_EQ(message("{}"), "messages[0].role");
  EXPECT_EQ(message(R"({"role":"king","content":"x"})"), "messages[0].role");
  EXPECT_EQ(message(R"({"role":"user"})"), "messages[0].content");
  EXPECT_EQ(message(R"({"role":"user","content":1})"), "messages[0].content");
  EXPECT_EQ(message(R"({"role":"user","content":[{"type":"text"}]})"), "messages[0].content[0].text");
  EXPECT_EQ(message(R"({"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]})"),
            "messages[0].content[0]");
  EXPECT_EQ(message(R"({"role":"assistant","tool_calls":[{"id":"a"}]})"),
            "messages[0].tool_calls[0].function");
  EXPECT_EQ(message(R"({"role":"function","name":"f","content":"x"})"), "messages[0]");
}

TEST_F(ChatScene, NamesTheToolThatIsWrong) {
  const auto tool = [&](const char* text) { return refused({{"tools", {Json::parse(text)}}}); };
  EXPECT_EQ(tool(R"({"type":"web_search"})"), "tools[0].type");
  EXPECT_EQ(tool(R"({"type":"function"})"), "tools[0].function");
  EXPECT_EQ(tool(R"({"type":"function","function":{}})"), "tools[0].function.name");
  EXPECT_EQ(tool(R"({"type":"function","function":{"name":"a b"}})"), "tools[0].function.name");
  EXPECT_EQ(tool(R"({"type":"function","function":{"name":"f","parameters":[]}})"),
            "tools[0].function.parameters");
  const Json good = Json::parse(R"({"type":"function","function":{"name":"f"}})");
  EXPECT_EQ(refused({{"tools", {good, good}}}), "tools[1].function.name");
  EXPECT_EQ(refused({{"tools", std::vector<Json>(129, good)}}), "tools");
}

TEST_F(ChatScene, NamesWhatItIgnores) {
  const Json tool =
      Json::parse(R"({"type":"function","function":{"name":"f","returns":{}},"hint":1,"cache_control":{}})");
  const Reply reply = send(with(hello(), {{"tools", {tool}}, {"priority", 1}, {"reasoning_effort", "low"}}));
  EXPECT_EQ(reply.status, 200) << reply.text;
  const std::string ignored = reply.header("x-inferno-ignored");
  for (const char* name : {"tools.returns", "tools.hint", "priority", "reasoning_effort"}) {
    EXPECT_NE(ignored.find(name), std::string::npos) << ignored;
  }
  EXPECT_EQ(ignored.find("cache_control"), std::string::npos) << ignored;
}

TEST_F(ChatScene, NamesWhatNeitherTheApiNorTheTemplateHas) {
  ServerScene scene(
      tiny_model(std::string(plain_template) + "{{ tone }}{{ messages[0].mood }}{{ enable_thinking }}"));
  Json body =
      with(hello(), {{"chat_template_kwargs", {{"tone", "kind"}, {"size", 1}, {"ton", 2}}},
                     {"thinking", {{"type", "enabled"}, {"budget_tokens", 9}, {"display", "omitted"}}},
                     {"prompt_logprobs", nullptr}});
  body["messages"][0].update({{"mood", "glad"}, {"foo", 1}, {"annotations", Json::array()}, {"name", "A"}});
  body["messages"].push_back({{"role", "user"}, {"content", "Well?"}, {"foo", 2}});
  const Reply reply = scene.send(chat_completions, body);
  EXPECT_EQ(reply.status, 200) << reply.text;
  EXPECT_EQ(reply.header("x-inferno-ignored"),
            "thinking.budget_tokens, thinking.display, messages[0].foo, chat_template_kwargs.size, "
            "chat_template_kwargs.ton");
}

TEST_F(ChatScene, TakesWhatAsksForNothing) {
  for (const Json& fields :
       {Json{{"function_call", "none"}}, Json{{"function_call", "auto"}}, Json{{"functions", Json::array()}},
        Json{{"top_k", 40.0}}, Json{{"prompt_logprobs", false}}}) {
    const Reply reply = send(with(hello(), fields));
    EXPECT_EQ(reply.status, 200) << reply.text;
    EXPECT_EQ(reply.header("x-inferno-ignored"), "");
  }
  EXPECT_EQ(refused({{"top_k", 40.5}}), "top_k");
}

TEST_F(ChatScene, TakesStrictToolsIfTheirCallsCanBeConstrained) {
  const Json tool = Json::parse(
      R"({"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object"}}})");
  EXPECT_EQ(refused({{"tools", {tool}}}), "tools[0].function.parameters");
  ServerScene scene(tiny_model(std::string(tools_template) + "{# <tool_call> #}"));
  const auto reply = [&](const Json& one) {
    return scene.send(chat_completions, with(hello(), {{"tools", {one}}, {"max_tokens", 4}}));
  };
  EXPECT_EQ(reply(tool).status, 200) << reply(tool).text;
  EXPECT_EQ(reply(tool).header("x-inferno-ignored"), "");
  Json hard = tool;
  hard["function"]["parameters"]["unevaluatedProperties"] = false;
  EXPECT_EQ(reply(hard).status, 400);
  hard["function"]["strict"] = false;
  EXPECT_EQ(reply(hard).status, 200);
}

TEST_F(ChatScene, SwitchesThinkingUnderEveryName) {
  ServerScene scene(tiny_model(std::string(plain_template) + "{% if enable_thinking %}Think: {% endif %}"));
  const auto prompt_tokens = [&](const Json& fields) {
    const Reply reply = scene.send(chat_completions, with(hello(), fields));
    EXPECT_EQ(reply.header("x-inferno-ignored"), "");
    return reply.json().at("usage").at("prompt_tokens").get<int>();
  };
  const int without = prompt_tokens({{"thinking", {{"type", "disabled"}}}});
  EXPECT_GT(prompt_tokens({{"thinking", {{"type", "enabled"}}}}), without);
  EXPECT_GT(prompt_tokens({{"think", true}}), without);
  EXPECT_GT(prompt_tokens({{"enable_thinking", true}}), without);
  EXPECT_GT(prompt_tokens({{"chat_template_kwargs", {{"enable_thinking", true}}}}), without);
  EXPECT_EQ(send(with(hello(), {{"think", true}})).header("x-inferno-ignored"), "thinking");
  EXPECT_EQ(refused({{"thinking", {{"type", "maybe"}}}}), "thinking.type");
  EXPECT_EQ(prompt_tokens({{"thinking", {{"type", "adaptive"}}}}), prompt_tokens(Json::object()));
}

TEST_F(ChatScene, RefusesToolsThatTheTemplateDoesNotShow) {
  ServerScene scene(tiny_model(plain_template));
  const Json tool = Json::parse(R"({"type":"function","function":{"name":"f"}})");
  const Reply reply = scene.send(chat_completions, with(hello(), {{"tools", {tool}}}));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["param"], "tools");
  const Json without = with(hello(), {{"tools", {tool}}, {"tool_choice", "none"}});
  EXPECT_EQ(scene.send(chat_completions, without).status, 200);
}

TEST_F(ChatScene, TellsBothNumbersOfAPromptThatIsTooLong) {
  for (const std::size_t length : {2000u, 2'000'000u}) {
    const Reply reply =
        send({{"messages", {{{"role", "user"}, {"content", std::string(length, 'x')}}}}, {"stream", true}});
    EXPECT_EQ(reply.status, 400);
    const Json error = reply.json().at("error");
    EXPECT_EQ(error.at("code"), "context_length_exceeded");
    EXPECT_EQ(error.at("param"), "messages");
    EXPECT_EQ(error.at("n_ctx"), 256);
    // Gateways such as LiteLLM know the error by these words only.
    const std::string message = error.at("message");
    EXPECT_TRUE(message.starts_with("This model's maximum context length is 256 tokens")) << message;
    EXPECT_GE(error.at("n_prompt_tokens"), 256);
  }
}

TEST_F(ChatScene, CutsALimitBeyondTheContext) {
  const Reply reply = send(with(hello(), {{"max_tokens", 1'000'000}, {"ignore_eos", true}}));
  const Json json = reply.json();
  EXPECT_EQ(json.at("choices").at(0).at("finish_reason"), "length");
  EXPECT_EQ(json.at("usage").at("total_tokens"), 256);
}

TEST_F(ChatScene, RefusesAnUnknownModel) {
  const Reply reply = send(with(hello(), {{"model", "gpt-5"}}));
  EXPECT_EQ(reply.status, 404);
  EXPECT_EQ(reply.json()["error"]["code"], "model_not_found");
}

TEST_F(ChatScene, LeavesOutTimingsIfTheyAreSwitchedOff) {
  ServerSettings settings;
  settings.timings = false;
  ServerScene scene(model_, settings);
  const Json json = scene.send(chat_completions, hello()).json();
  EXPECT_FALSE(json.contains("timings"));
  EXPECT_FALSE(json.contains("inferno"));
}

}  // namespace
}  // namespace inferno::server
