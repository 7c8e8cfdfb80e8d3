// Strict tools mean the same in every API.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "server/doors.h"
#include "server/exchange_scene.h"
#include "server/model_scene.h"

namespace inferno::server {
namespace {

struct Door {
  void (*route)(SharedCall);
  Dialect dialect;
  std::string name, schema, pointer;  // where the schema of the second tool is
};

// Its second tool is f, as each API describes it.
Json body_for(const Door& door, const Json& schema, const Json& strict) {
  const Json messages = {{{"role", "user"}, {"content", "Hello"}}};
  Json function = {{"name", "f"}, {"strict", strict}};
  if (door.dialect == Dialect::anthropic) {
    function["input_schema"] = schema;
    return {{"max_tokens", 4},
            {"messages", messages},
            {"tools", {{{"type", "bash_20250124"}, {"name", "bash"}}, function}}};
  }
  function["parameters"] = schema;
  if (door.schema == "tools[1].parameters") {
    function["type"] = "function";
    return {{"max_output_tokens", 4}, {"input", "Hello"}, {"tools", {{{"type", "web_search"}}, function}}};
  }
  const Json other = {{"type", "function"}, {"function", {{"name", "g"}}}};
  return {{"max_tokens", 4},
          {"messages", messages},
          {"tools", {other, {{"type", "function"}, {"function", function}}}}};
}

class StrictTools : public testing::TestWithParam<Door> {
 protected:
  Reply send(ServerScene& scene, const Json& schema, const Json& strict) const {
    CallOrigin origin;
    origin.dialect = GetParam().dialect;
    return scene.send(GetParam().route, body_for(GetParam(), schema, strict), origin);
  }
  // The place that an error names.
  static std::string place(const Reply& reply) {
    const Json error = reply.json().at("error");
    return error.value("param", "") + " | " + error.at("message").get<std::string>();
  }
};

TEST_P(StrictTools, AreRefusedIfTheyCannotBeEnforced) {
  ServerScene scene(tiny_model(std::string(tools_template) + "{# <tool_call> #}"));
  const Json easy = {{"type", "object"}};
  const Json hard = {{"type", "object"}, {"properties", {{"a", {{"unevaluatedProperties", false}}}}}};
  for (const Json& strict : {Json(true), Json(false), Json(nullptr)}) {
    const Reply reply = send(scene, easy, strict);
    EXPECT_EQ(reply.status, 200) << reply.text;
    EXPECT_EQ(reply.header("x-inferno-ignored").find("strict"), std::string::npos);
  }
  EXPECT_EQ(send(scene, hard, false).status, 200);
  EXPECT_EQ(send(scene, hard, nullptr).status, 200);
  const Reply refused = send(scene, hard, true);
  EXPECT_EQ(refused.status, 400) << refused.text;
  const std::string named = place(refused);
  if (GetParam().dialect == Dialect::openai) {
    EXPECT_TRUE(named.starts_with(GetParam().schema + " |")) << named;
  }
  EXPECT_NE(named.find(GetParam().pointer + "/properties/a"), std::string::npos) << named;
  EXPECT_EQ(send(scene, easy, "yes").status, 400);
}

TEST_P(StrictTools, AreRefusedIfTheFormOfCallsIsNotKnown) {
  ServerScene scene(tiny_model(tools_template));
  const Reply refused = send(scene, {{"type", "object"}}, true);
  EXPECT_EQ(refused.status, 400) << refused.text;
  EXPECT_NE(place(refused).find("cannot be strict"), std::string::npos) << refused.text;
  EXPECT_EQ(send(scene, {{"type", "object"}}, false).status, 200);
}

std::string name_of(const testing::TestParamInfo<Door>& door) {
  return door.param.name;
}

INSTANTIATE_TEST_SUITE_P(Doors, StrictTools,
                         testing::Values(Door{chat_completions, Dialect::openai, "Chat",
                                              "tools[1].function.parameters", "/tools/1/function/parameters"},
                                         Door{responses, Dialect::openai, "Responses", "tools[1].parameters",
                                              "/tools/1/parameters"},
                                         Door{messages, Dialect::anthropic, "Messages",
                                              "tools[1].input_schema", "/tools/1/input_schema"}),
                         name_of);

}  // namespace
}  // namespace inferno::server
