// Fields that constrain the text mean the same in every API.
#include "server/fields/constraint_fields.h"

#include <gtest/gtest.h>

#include <string>

#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

struct Door {
  void (*route)(SharedCall);
  Dialect dialect;
  const char* name;
  const char* body;
  const char* text;  // JSON pointer to it in the answer
};

class ConstraintFields : public testing::TestWithParam<Door> {
 protected:
  static void SetUpTestSuite() { model_ = tiny_model(plain_template); }
  static void TearDownTestSuite() { model_.reset(); }

  Reply send(const Json& fields) {
    Json body = Json::parse(GetParam().body);
    body.update({{"seed", 1}, {"temperature", 1.0}});
    body.update(fields);
    CallOrigin origin;
    origin.dialect = GetParam().dialect;
    return scene_.send(GetParam().route, body, origin);
  }
  std::string answer(const Json& fields) {
    const Reply reply = send(fields);
    EXPECT_EQ(reply.status, 200) << reply.text;
    EXPECT_EQ(reply.header("x-inferno-ignored"), "");
    return reply.json().at(Json::json_pointer(GetParam().text));
  }

  static std::shared_ptr<const TextModel> model_;
  ServerScene scene_{model_};
};
std::shared_ptr<const TextModel> ConstraintFields::model_;

TEST_P(ConstraintFields, SayWhetherJsonMayHaveBlanks) {
  const Json value = Json::parse(R"({"a": [1, 2], "b": {"c": 3}})");
  const Json schema = {{"schema", {{"const", value}}}};
  const auto with_blanks = [&](const char* whitespace) {
    Json fields = schema;
    fields["whitespace"] = whitespace;
    return fields;
  };
  EXPECT_EQ(answer(with_blanks("compact")), value.dump());
  // A random model chooses some.
  EXPECT_NE(answer(schema), value.dump());
  EXPECT_EQ(answer(with_blanks("flexible")), answer(schema));
}

TEST_P(ConstraintFields, RefuseBlanksThatMeanNothing) {
  const Reply unknown = send({{"json_object", true}, {"whitespace", "none"}});
  EXPECT_EQ(unknown.status, 400) << unknown.text;
  EXPECT_NE(unknown.text.find("flexible"), std::string::npos) << unknown.text;
  const Reply no_json = send({{"regex", "a"}, {"whitespace", "compact"}});
  EXPECT_EQ(no_json.status, 400) << no_json.text;
  EXPECT_NE(no_json.text.find("for JSON only"), std::string::npos) << no_json.text;
}

INSTANTIATE_TEST_SUITE_P(
    Doors, ConstraintFields,
    testing::Values(
        Door{chat_completions, Dialect::openai, "Chat",
             R"({"messages": [{"role": "user", "content": "Hello"}]})", "/choices/0/message/content"},
        Door{completions, Dialect::openai, "Completions", R"({"prompt": "Hello", "max_tokens": 200})",
             "/choices/0/text"},
        Door{responses, Dialect::openai, "Responses", R"({"input": "Hello"})", "/output/0/content/0/text"},
        Door{messages, Dialect::anthropic, "Messages",
             R"({"max_tokens": 200, "messages": [{"role": "user", "content": "Hello"}]})",
             "/content/0/text"}),
    [](const auto& door) { return std::string(door.param.name); });

}  // namespace
}  // namespace inferno::server
