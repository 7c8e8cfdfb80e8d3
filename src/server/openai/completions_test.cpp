#include <gtest/gtest.h>

#include "base/utf8.h"
#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

Json base() {
  return Json::parse(R"({"prompt":"Once upon","seed":7,"max_tokens":10,"temperature":0.8})");
}

Json with(Json body, const Json& fields) {
  if (!fields.is_null()) body.update(fields);
  return body;
}

class CompletionsScene : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = tiny_model(plain_template); }
  static void TearDownTestSuite() { model_.reset(); }

  Json answer(const Json& fields) {
    const Reply reply = scene_.send(completions, with(base(), fields));
    EXPECT_EQ(reply.status, 200) << reply.text;
    return reply.json();
  }
  std::vector<Json> stream(const Json& fields) {
    return scene_.send(completions, with(with(base(), fields), {{"stream", true}})).events();
  }
  std::string refused(const Json& fields) {
    const Reply reply = scene_.send(completions, with(base(), fields));
    EXPECT_EQ(reply.status, 400) << reply.text;
    const Json param = reply.json()["error"]["param"];
    return param.is_string() ? param.get<std::string>() : "";
  }

  static std::shared_ptr<const TextModel> model_;
  ServerScene scene_{model_};
};
std::shared_ptr<const TextModel> CompletionsScene::model_;

TEST_F(CompletionsScene, AnswersInOpenAIsShape) {
  const Json json = answer(nullptr);
  EXPECT_TRUE(json.at("id").get<std::string>().starts_with("cmpl-"));
  EXPECT_EQ(json.at("object"), "text_completion");
  const Json& choice = json.at("choices").at(0);
  EXPECT_TRUE(choice.at("text").is_string());
  EXPECT_EQ(choice.at("logprobs"), nullptr);
  EXPECT_EQ(choice.at("finish_reason"), "length");
  EXPECT_EQ(json.at("usage").at("completion_tokens"), 10);
  EXPECT_TRUE(json.contains("timings"));
}

TEST_F(CompletionsScene, StreamsTheSameText) {
  const auto events = stream({{"echo", true}});
  std::string text;
  for (const Json& event : events) {
    if (!event.is_object()) continue;
    EXPECT_EQ(event.at("object"), "text_completion");
    text += event.at("choices").at(0).at("text");
  }
  EXPECT_EQ(events.back(), "[DONE]");
  EXPECT_TRUE(text.starts_with("Once upon"));
  EXPECT_EQ(text, answer({{"echo", true}}).at("choices").at(0).at("text"));
}

TEST_F(CompletionsScene, WritesSixteenTokensUnlessToldOtherwise) {
  const Json json = answer({{"max_tokens", nullptr}, {"ignore_eos", true}});
  EXPECT_EQ(json.at("usage").at("completion_tokens"), 16);
}

TEST_F(CompletionsScene, TakesTokensForTheTextThatTheyAre) {
  const auto tokens = model_->tokenizer().add_special(model_->tokenizer().encode("Once upon"));
  const Json from_tokens = answer({{"prompt", tokens}, {"echo", true}});
  EXPECT_EQ(from_tokens.at("usage").at("prompt_tokens"), tokens.size());
  EXPECT_EQ(from_tokens.at("choices"), answer({{"echo", true}}).at("choices"));
}

TEST_F(CompletionsScene, NumbersTheAnswersPromptByPrompt) {
  const Json json = answer({{"prompt", {"Once upon", "A long time"}}, {"n", 2}, {"echo", true}});
  ASSERT_EQ(json.at("choices").size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    const Json& choice = json.at("choices").at(i);
    EXPECT_EQ(choice.at("index"), i);
    EXPECT_TRUE(choice.at("text").get<std::string>().starts_with(i < 2 ? "Once upon" : "A long time"));
  }
  EXPECT_EQ(json.at("choices").at(0), answer({{"echo", true}}).at("choices").at(0));
  const auto tokens = model_->tokenizer().encode("Once upon");
  EXPECT_EQ(answer({{"prompt", Json::array({tokens, tokens})}}).at("choices").size(), 2u);
}

TEST_F(CompletionsScene, GivesLogProbabilitiesInTheOldShape) {
  const Json choice = answer({{"logprobs", 3}}).at("choices").at(0);
  const Json& logprobs = choice.at("logprobs");
  const std::string text = choice.at("text");
  const std::size_t tokens = logprobs.at("tokens").size();
  ASSERT_GT(tokens, 0u);
  for (const char* name : {"token_logprobs", "top_logprobs", "text_offset"}) {
    EXPECT_EQ(logprobs.at(name).size(), tokens) << name;
  }
  EXPECT_EQ(logprobs.at("text_offset").at(0), 0);
  for (std::size_t i = 0; i < tokens; ++i) {
    const std::string token = logprobs.at("tokens").at(i);
    EXPECT_LE(logprobs.at("token_logprobs").at(i), 0);
    EXPECT_EQ(logprobs.at("top_logprobs").at(i).at(token), logprobs.at("token_logprobs").at(i));
    EXPECT_GE(logprobs.at("top_logprobs").at(i).size(), 3u);
  }
}

TEST_F(CompletionsScene, StreamsTheSameLogProbabilities) {
  const Json whole = answer({{"logprobs", 1}}).at("choices").at(0).at("logprobs");
  Json tokens = Json::array(), offsets = Json::array();
  for (const Json& event : stream({{"logprobs", 1}})) {
    if (!event.is_object() || event.at("choices").at(0).at("logprobs").is_null()) continue;
    const Json& some = event.at("choices").at(0).at("logprobs");
    for (const Json& token : some.at("tokens")) tokens.push_back(token);
    for (const Json& offset : some.at("text_offset")) offsets.push_back(offset);
  }
  EXPECT_EQ(tokens, whole.at("tokens"));
  EXPECT_EQ(offsets, whole.at("text_offset"));
}

TEST_F(CompletionsScene, ScoresAPrompt) {
  const Json prompt = model_->tokenizer().encode("Once upon a time");
  const Json scored = {{"prompt", prompt}, {"echo", true}, {"logprobs", 1}, {"max_tokens", 0}};
  const Json json = answer(scored);
  EXPECT_EQ(json.at("usage").at("completion_tokens"), 0);
  const Json& choice = json.at("choices").at(0);
  EXPECT_EQ(choice.at("text"), "Once upon a time");
  EXPECT_EQ(choice.at("finish_reason"), "length");
  const Json& logprobs = choice.at("logprobs");
  ASSERT_EQ(logprobs.at("tokens").size(), prompt.size());
  EXPECT_EQ(logprobs.at("token_logprobs").at(0), nullptr);
  EXPECT_LT(logprobs.at("token_logprobs").at(1), 0);
  EXPECT_EQ(logprobs.at("text_offset").at(0), 0);
  EXPECT_GT(logprobs.at("text_offset").back(), 0);
  std::string joined;
  for (const Json& token : logprobs.at("tokens")) joined += token.get<std::string>();
  EXPECT_EQ(joined, "Once upon a time");
  const auto events = stream(scored);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].at("choices").at(0).at("logprobs"), logprobs);
}

TEST_F(CompletionsScene, EchoesThePromptsLogProbabilitiesBeforeTheAnswers) {
  const Json fields = {{"echo", true}, {"logprobs", 1}};
  const Json choice = answer(fields).at("choices").at(0);
  const Json alone = answer({{"logprobs", 1}}).at("choices").at(0);
  const Json& tokens = choice.at("logprobs").at("tokens");
  const Json& own = alone.at("logprobs").at("tokens");
  ASSERT_GT(tokens.size(), own.size());
  EXPECT_EQ(Json(std::vector<Json>(tokens.end() - static_cast<std::ptrdiff_t>(own.size()), tokens.end())),
            own);
  Json streamed = Json::array();
  for (const Json& event : stream(fields)) {
    if (!event.is_object() || event.at("choices").at(0).at("logprobs").is_null()) continue;
    for (const Json& token : event.at("choices").at(0).at("logprobs").at("tokens")) streamed.push_back(token);
  }
  EXPECT_EQ(streamed, tokens);
}

TEST_F(CompletionsScene, RefusesByNameWhatItCannotDo) {
  EXPECT_EQ(refused({{"max_tokens", 0}}), "max_tokens");
  EXPECT_EQ(refused({{"suffix", "the end"}}), "suffix");
  EXPECT_EQ(refused({{"best_of", 2}}), "best_of");
  EXPECT_EQ(refused({{"best_of", 21}}), "best_of");
  EXPECT_EQ(refused({{"logprobs", 21}}), "logprobs");
  EXPECT_EQ(refused({{"logprobs", true}}), "logprobs");
  EXPECT_EQ(refused({{"prompt", nullptr}}), "prompt");
  EXPECT_EQ(refused({{"prompt", Json::array()}}), "prompt");
  EXPECT_EQ(refused({{"prompt", 5}}), "prompt");
  EXPECT_EQ(refused({{"prompt", Json::parse("[1,512]")}}), "prompt");
  EXPECT_EQ(refused({{"prompt", Json::parse("[1,\"a\"]")}}), "prompt");
  EXPECT_EQ(refused({{"prompt", Json::parse("[\"a\",1]")}}), "prompt[1]");
  EXPECT_EQ(refused({{"prompt", Json::parse("[[1],[]]")}}), "prompt[1]");
  EXPECT_EQ(refused({{"prompt", std::vector<std::string>(65, "a")}}), "prompt");
  EXPECT_EQ(refused({{"response_format", {{"type", "yaml"}}}}), "response_format.type");
  EXPECT_EQ(refused({{"stream_options", {{"include_usage", true}}}}), "stream_options");
}

TEST_F(CompletionsScene, RefusesTokensBeyondTheContextBeforeAnyPromptBegins) {
  const Json prompts = Json::array({std::vector<int>(3, 97), std::vector<int>(256, 97)});
  const auto before = model_->engine().stats().requests;
  const Reply reply = scene_.send(completions, with(base(), {{"prompt", prompts}, {"stream", true}}));
  EXPECT_EQ(reply.status, 400);
  const Json error = reply.json().at("error");
  EXPECT_EQ(error.at("code"), "context_length_exceeded");
  EXPECT_EQ(error.at("param"), "prompt");
  EXPECT_EQ(error.at("n_prompt_tokens"), 256);
  EXPECT_EQ(refused({{"prompt", prompts}}), "prompt");
  EXPECT_EQ(model_->engine().stats().requests, before);
}

TEST_F(CompletionsScene, TakesBestOfIfEveryAnswerIsReturned) {
  EXPECT_EQ(answer({{"best_of", 2}, {"n", 2}}).at("choices").size(), 2u);
  EXPECT_EQ(answer({{"best_of", 1}}).at("choices").size(), 1u);
}

TEST_F(CompletionsScene, WarnsOfAControlTokenThatIsText) {
  const Json json = answer({{"prompt", "a<|endoftext|>b"}});
  EXPECT_FALSE(json.at("inferno").at("warnings").empty());
  const Json parsed = answer({{"prompt", "a<|endoftext|>b"}, {"parse_special", true}});
  EXPECT_TRUE(parsed.at("inferno").at("warnings").empty());
  EXPECT_LT(parsed.at("usage").at("prompt_tokens"), json.at("usage").at("prompt_tokens"));
}

TEST_F(CompletionsScene, NamesFieldsOfChatsAsIgnored) {
  const Json fields = {{"reasoning_effort", "low"}, {"response_format", {{"type", "text"}}}};
  const Reply reply = scene_.send(completions, with(base(), fields));
  EXPECT_EQ(reply.header("x-inferno-ignored"), "reasoning_effort");
}

}  // namespace
}  // namespace inferno::server
