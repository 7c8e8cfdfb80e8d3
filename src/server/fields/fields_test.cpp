#include "server/fields/fields.h"

#include <gtest/gtest.h>

#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

// The field that an ApiError names; empty if there was none.
template <class Read>
std::string refused(const Read& read) {
  try {
    read();
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status, 400);
    EXPECT_EQ(error.type, "invalid_request_error");
    EXPECT_NE(error.message, "");
    return error.param;
  }
  return {};
}

TEST(Fields, TreatsNullAsAbsent) {
  const Json body = {{"n", nullptr}, {"stream", nullptr}};
  Fields fields(body);
  EXPECT_EQ(fields.take_integer("n", 1, 2), std::nullopt);
  EXPECT_EQ(fields.take_bool("stream"), std::nullopt);
  EXPECT_EQ(fields.take("none"), nullptr);
}

TEST(Fields, RefusesWrongTypesAndValuesOutOfRange) {
  for (const char* value : {"0", "3", "1.5", "\"1\"", "true", "[1]", "{}", "1e300", "-9223372036854775808"}) {
    const Json body = {{"n", Json::parse(value)}};
    EXPECT_EQ(refused([&] { Fields(body).take_integer("n", 1, 2); }), "n") << value;
  }
  for (const char* value : {"-0.1", "2.1", "\"1\"", "true", "[1]", "1e308"}) {
    const Json body = {{"temperature", Json::parse(value)}};
    EXPECT_EQ(refused([&] { Fields(body).take_number("temperature", 0, 2); }), "temperature") << value;
  }
  const Json body = {{"stop", 1}, {"list", {1, 2, 3}}};
  EXPECT_EQ(refused([&] { Fields(body).take_string("stop"); }), "stop");
  EXPECT_EQ(refused([&] { Fields(body).take_bool("stop"); }), "stop");
  EXPECT_EQ(refused([&] { Fields(body).take_object("stop"); }), "stop");
  EXPECT_EQ(refused([&] { Fields(body).take_array("list", 2); }), "list");
  EXPECT_EQ(refused([&] { Fields(body, "inner.").take_array("list", 2); }), "inner.list");
}

TEST(Fields, TakesAWholeNumberHoweverItIsWritten) {
  const Json body = {{"n", 2.0}};
  EXPECT_EQ(Fields(body).take_integer("n", 1, 2), 2);
}

TEST(Fields, ShortensWhatItShows) {
  try {
    refuse_value("name", "a number", std::string(100'000, 'x'));
  } catch (const ApiError& error) {
    EXPECT_LT(error.message.size(), 200u);
  }
}

class FieldsScene : public testing::Test {
 protected:
  std::vector<std::string> ignored(const std::string& body) {
    const auto call = scene_.make_call(body, std::make_shared<RecordedExchange>());
    const Json parsed = call->take_body();
    Fields fields(parsed);
    fields.accept({"user"});
    fields.finish(*call);
    call->respond(200, Json::object());
    return call->ignored();
  }

  ServerScene scene_{nullptr};
};

TEST_F(FieldsScene, NamesFieldsWithoutEffect) {
  EXPECT_EQ(ignored(R"({"user":"a","priority":1,"request_id":"x","null":null})"),
            (std::vector<std::string>{"priority", "request_id"}));
}

TEST_F(FieldsScene, RefusesFieldsThatWouldChangeTheAnswer) {
  for (const char* name : {"structural_tag", "ebnf", "lora", "mirostat", "use_beam_search",
                           "truncate_prompt_tokens", "chat_template", "echo"}) {
    EXPECT_EQ(refused([&] { ignored(dumped({{name, 1}})); }), name);
  }
  EXPECT_EQ(refused([&] { ignored(R"({"best_of":2})"); }), "best_of");
  EXPECT_EQ(refused([&] { ignored(R"({"extra_body":{"top_k":1}})"); }), "extra_body");
  EXPECT_EQ(refused([&] { ignored(R"({"skip_special_tokens":false})"); }), "skip_special_tokens");
}

TEST_F(FieldsScene, TakesTheirNeutralValues) {
  EXPECT_EQ(ignored(R"({"structural_tag":"","ebnf":null,"lora":[],"mirostat":0,"use_beam_search":false,
                        "skip_special_tokens":true,"best_of":1,"echo":false,"tfs_z":1.0,"top_n_sigma":-1,"xtc_probability":0.0})"),
            std::vector<std::string>{});
}

TEST_F(FieldsScene, RefusesAMillionFields) {
  std::string body = "{";
  for (int i = 0; i < 100'000; ++i) body += "\"k" + std::to_string(i) + "\":0,";
  body.back() = '}';
  EXPECT_EQ(refused([&] { ignored(body); }), "");
  EXPECT_THROW(ignored(body), ApiError);
}

class CommonFieldsScene : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = tiny_model(tools_template); }
  static void TearDownTestSuite() { model_.reset(); }

  CommonFields take(const std::string& body, int key = 0) {
    const auto call = scene_.make_call(body, std::make_shared<RecordedExchange>(),
                                       {.route = {}, .key = key, .headers = {}});
    const Json parsed = call->take_body();
    Fields fields(parsed);
    CommonFields common = take_common(fields, *call);
    fields.finish(*call);
    EXPECT_EQ(call->ignored(), std::vector<std::string>{}) << body;
    return common;
  }

  static std::shared_ptr<const TextModel> model_;
  ServerScene scene_{model_};
};
std::shared_ptr<const TextModel> CommonFieldsScene::model_;

TEST_F(CommonFieldsScene, TakesSamplingUnderEveryName) {
  const auto settings =
      take(R"({"temperature":0.5,"top_p":0,"top_k":-1,"min_p":0.1,"typical_p":0.9,"n_predict":7,
      "repetition_penalty":1.1,"seed":-5,"stop":"x","logit_bias":{"5":-100},"ignore_eos":true,"min_tokens":2,
      "stop_token_ids":[3,4],"presence_penalty":-2,"frequency_penalty":2})")
          .request.settings;
  EXPECT_EQ(settings.temperature, 0.5f);
  EXPECT_GT(*settings.top_p, 0);
  EXPECT_EQ(settings.max_tokens, 7);
  EXPECT_EQ(settings.repeat_penalty, 1.1f);
  EXPECT_GE(*settings.seed, 0);
  EXPECT_EQ(settings.stop, std::vector<std::string>{"x"});
  EXPECT_EQ(settings.min_tokens, 2);
  EXPECT_EQ(settings.stop_token_ids, (std::vector<TokenId>{3, 4}));
}

TEST_F(CommonFieldsScene, PrefersTheNewestNameOfTheLimit) {
  EXPECT_EQ(take(R"({"max_tokens":5,"max_completion_tokens":6,"n_predict":7})").request.settings.max_tokens,
            6);
  EXPECT_EQ(take(R"({"max_tokens":-1})").request.settings.max_tokens, -1);
  EXPECT_GT(take(R"({"max_tokens":9000000000000})").request.settings.max_tokens, 1'000'000);
}

TEST_F(CommonFieldsScene, NamesTheFieldThatIsOutOfRange) {
  const std::pair<const char*, const char*> cases[] = {{"temperature", "-0.01"},
                                                       {"temperature", "2.01"},
                                                       {"temperature", "\"hot\""},
                                                       {"top_p", "1.01"},
                                                       {"top_p", "-1"},
                                                       {"top_k", "-2"},
                                                       {"top_k", "1.5"},
                                                       {"min_p", "2"},
                                                       {"typical_p", "2"},
                                                       {"repetition_penalty", "0"},
                                                       {"repeat_penalty", "-1"},
                                                       {"presence_penalty", "2.5"},
                                                       {"frequency_penalty", "-3"},
                                                       {"seed", "0.5"},
                                                       {"seed", "\"1\""},
                                                       {"max_tokens", "0"},
                                                       {"max_completion_tokens", "-2"},
                                                       {"n_predict", "1.5"},
                                                       {"min_tokens", "-1"},
                                                       {"stop", "\"\""},
                                                       {"stop", "[1]"},
                                                       {"stop", "{}"},
                                                       {"logit_bias", "{\"x\":1}"},
                                                       {"logit_bias", "{\"1\":101}"},
                                                       {"logit_bias", "{\"512\":1}"},
                                                       {"logit_bias", "[1]"},
                                                       {"stop_token_ids", "[512]"},
                                                       {"stop_token_ids", "[-1]"},
                                                       {"stop_token_ids", "3"},
                                                       {"ignore_eos", "1"},
                                                       {"cache_prompt", "0"},
                                                       {"cache_salt", "1"},
                                                       {"chat_template_kwargs", "[]"},
                                                       {"add_generation_prompt", "\"yes\""},
                                                       {"continue_final_message", "1"},
                                                       {"include_reasoning", "0"},
                                                       {"reasoning_effort", "\"hard\""},
                                                       {"reasoning_effort", "1"}};
  for (const auto& [name, value] : cases) {
    const std::string body = "{\"" + std::string(name) + "\":" + value + "}";
    EXPECT_EQ(refused([&] { take(body); }), name) << body;
  }
  EXPECT_EQ(refused([&] { take(R"({"max_tokens":3,"min_tokens":4})"); }), "min_tokens");
  // Looking up each among the others would take seconds.
  Json many = Json::object();
  for (int i = 0; i < 1025; ++i) many[std::to_string(i)] = i;
  EXPECT_EQ(refused([&] { take(Json{{"chat_template_kwargs", many}}.dump()); }), "chat_template_kwargs");
}

TEST_F(CommonFieldsScene, SharesPrefixesWithinAKeyAndASaltOnly) {
  const auto scope = [&](const char* body, int key) { return take(body, key).request.cache_scope; };
  EXPECT_EQ(scope("{}", 1), scope("{}", 1));
  EXPECT_NE(scope("{}", 1), scope("{}", 2));
  EXPECT_NE(scope("{}", 1), scope(R"({"cache_salt":"a"})", 1));
  EXPECT_NE(scope(R"({"cache_salt":"a"})", 1), scope(R"({"cache_salt":"a"})", 2));
  EXPECT_FALSE(take(R"({"cache_prompt":false})").request.reuse_prefix);
}

TEST_F(CommonFieldsScene, ContinuesAMessageOrBeginsOne) {
  EXPECT_TRUE(take("{}").request.add_generation_prompt);
  EXPECT_FALSE(take(R"({"continue_final_message":true})").request.add_generation_prompt);
  EXPECT_EQ(refused([&] { take(R"({"continue_final_message":true,"add_generation_prompt":true})"); }),
            "continue_final_message");
}

TEST_F(CommonFieldsScene, PutsTheRequestAboveTheServersSettings) {
  ServerSettings settings;
  settings.defaults.temperature = 0.25f;
  settings.defaults.top_k = 7;
  settings.template_variables = {{"a", 1}, {"b", 2}};
  ServerScene scene(model_, settings);
  const auto call =
      scene.make_call(R"({"top_k":9,"chat_template_kwargs":{"b":3}})", std::make_shared<RecordedExchange>());
  const Json body = call->take_body();
  Fields fields(body);
  const TextRequest request = take_common(fields, *call).request;
  EXPECT_EQ(request.settings.temperature, 0.25f);
  EXPECT_EQ(request.settings.top_k, 9);
  EXPECT_EQ(request.template_variables, Json({{"a", 1}, {"b", 3}}));
}

}  // namespace
}  // namespace inferno::server
