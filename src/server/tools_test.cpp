#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

using testing::HasSubstr;

class ToolsScene : public testing::Test {
 protected:
  static void SetUpTestSuite() { model_ = tiny_model(tools_template); }
  static void TearDownTestSuite() { model_.reset(); }

  Json send(const std::function<void(SharedCall)>& route, const char* body, int status = 200) {
    const Reply reply = scene_.send(route, std::string(body));
    EXPECT_EQ(reply.status, status) << reply.text;
    ignored_ = reply.header("x-inferno-ignored");
    return reply.json();
  }
  static std::vector<TokenId> ids(const Json& reply) {
    return reply.at("tokens").get<std::vector<TokenId>>();
  }

  static std::shared_ptr<const TextModel> model_;
  ServerScene scene_{model_};
  std::string ignored_;
};
std::shared_ptr<const TextModel> ToolsScene::model_;

TEST_F(ToolsScene, TokenizesForClientsOfBothServers) {
  const Tokenizer& tokenizer = model_->tokenizer();
  const Json content = send(tokenize, R"({"content":"Hello"})");
  EXPECT_EQ(ids(content), tokenizer.encode_prompt("Hello"));
  EXPECT_EQ(content.at("count"), content.at("tokens").size());
  EXPECT_EQ(content.at("max_model_len"), 256);
  EXPECT_TRUE(content.at("token_strs").is_null());
  EXPECT_EQ(ids(send(tokenize, R"({"prompt":"Hello"})")), tokenizer.encode_with_special("Hello"));
  EXPECT_EQ(ids(send(tokenize, R"({"content":"Hello","add_special":true})")),
            tokenizer.encode_with_special("Hello"));
  EXPECT_EQ(ids(send(tokenize, R"({"prompt":"Hello","add_special_tokens":false})")),
            tokenizer.encode_prompt("Hello"));
}

TEST_F(ToolsScene, RefusesATextOfFarTooManyTokens) {
  const Json body = {{"content", std::string((1 << 20) + 1, '7')}};
  const Reply reply = scene_.send(tokenize, body);
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.json()["error"]["param"], "content");
  const Json messages = {{"messages", {{{"role", "user"}, {"content", std::string((1 << 20) + 1, '7')}}}}};
  const Reply rendered = scene_.send(tokenize, messages);
  EXPECT_EQ(rendered.status, 400);
  EXPECT_EQ(rendered.json()["error"]["param"], "messages") << rendered.text;
}

TEST_F(ToolsScene, ReadsControlTokensUnlessToldNotTo) {
  const Tokenizer& tokenizer = model_->tokenizer();
  EXPECT_EQ(ids(send(tokenize, R"({"content":"<|im_end|>"})")), tokenizer.encode_prompt("<|im_end|>"));
  EXPECT_EQ(ids(send(tokenize, R"({"content":"<|im_end|>","parse_special":false})")),
            tokenizer.encode("<|im_end|>"));
}

TEST_F(ToolsScene, ShowsPiecesAndPartsOfCharactersAsBytes) {
  const Json reply = send(tokenize, R"({"content":"a\u20ac","with_pieces":true,"return_token_strs":true})");
  std::string joined;
  for (const Json& token : reply.at("tokens")) {
    EXPECT_TRUE(token.at("id").is_number());
    const Json& piece = token.at("piece");
    if (piece.is_string()) joined += piece.get<std::string>();
    if (piece.is_array()) {
      for (const Json& byte : piece) joined += static_cast<char>(byte.get<unsigned char>());
    }
  }
  EXPECT_EQ(joined, "a\u20ac");
  EXPECT_EQ(reply.at("token_strs").size(), reply.at("tokens").size());
  EXPECT_EQ(reply.at("token_strs").at(0), "a");
}

TEST_F(ToolsScene, TokenizesAConversationAsItsPrompt) {
  const Json tokens = send(tokenize, R"({"messages":[{"role":"user","content":"Hello"}],"temperature":0})");
  const Json prompt = send(apply_template, R"({"messages":[{"role":"user","content":"Hello"}]})");
  EXPECT_EQ(prompt.at("prompt"), "[user] Hello\n[assistant]");
  EXPECT_EQ(ids(tokens), model_->tokenizer().encode_prompt("[user] Hello\n[assistant]"));
  const Json open =
      send(tokenize, R"({"messages":[{"role":"user","content":"Hello"}],"add_generation_prompt":false})");
  EXPECT_LT(open.at("count"), tokens.at("count"));
}

TEST_F(ToolsScene, AppliesTheTemplateWithTools) {
  const Json prompt = send(apply_template, R"({"messages":[{"role":"user","content":"Hello"}],
      "tools":[{"type":"function","function":{"name":"look_up","parameters":{}}}]})");
  EXPECT_EQ(prompt.at("prompt"), "look_up\n[user] Hello\n[assistant]");
}

TEST_F(ToolsScene, DetokenizesWhatItTokenized) {
  const Json tokens = send(tokenize, R"({"content":"Hello, \u00e4\u20ac"})");
  const std::string body = Json{{"tokens", tokens.at("tokens")}}.dump();
  const Json text = send(detokenize, body.c_str());
  EXPECT_EQ(text.at("content"), "Hello, \u00e4\u20ac");
  EXPECT_EQ(text.at("prompt"), text.at("content"));
  EXPECT_EQ(send(detokenize, R"({"tokens":[]})").at("content"), "");
}

TEST_F(ToolsScene, RefusesWhatItCannotRead) {
  for (const char* body :
       {R"({})", R"({"content":"a","prompt":"b"})", R"({"content":7})", R"({"content":null})",
        R"({"content":"a","add_special":"yes"})", R"({"messages":[]})", R"({"messages":"a"})"}) {
    EXPECT_TRUE(send(tokenize, body, 400).at("error").at("message").is_string()) << body;
  }
  for (const char* body : {R"({})", R"({"tokens":7})", R"({"tokens":["a"]})", R"({"tokens":[-1]})",
                           R"({"tokens":[1.5]})", R"({"tokens":[100000]})", R"({"tokens":[4294967297]})"}) {
    EXPECT_EQ(send(detokenize, body, 400).at("error").at("param"), "tokens") << body;
  }
  send(detokenize, R"({"tokens":[99999999999999999999]})", 400);
  send(apply_template, R"({})", 400);
  EXPECT_EQ(send(tokenize, R"({"content":"a","model":"gpt-4"})", 404).at("error").at("code"),
            "model_not_found");
}

TEST_F(ToolsScene, NamesFieldsWithoutEffect) {
  send(tokenize, R"({"content":"a","colour":"red"})");
  EXPECT_EQ(ignored_, "colour");
  send(tokenize, R"({"messages":[{"role":"user","content":"Hello"}],"with_pieces":true,"colour":"red"})");
  EXPECT_EQ(ignored_, "colour");
}

TEST_F(ToolsScene, ShowsProperties) {
  const Json properties = send(show_properties, "");
  EXPECT_EQ(properties.at("n_ctx"), 256);
  EXPECT_EQ(properties.at("default_generation_settings").at("n_ctx"), 256);
  EXPECT_EQ(properties.at("total_slots"), 4);
  EXPECT_EQ(properties.at("chat_template"), tools_template);
  EXPECT_EQ(properties.at("model_path"), model_->path().string());
}

}  // namespace
}  // namespace inferno::server
