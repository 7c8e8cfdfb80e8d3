#include "chat/constraint/read_constraint.h"

#include <gtest/gtest.h>

#include "chat/json.h"

namespace inferno {
namespace {

using Kind = TextConstraint::Kind;

ReplyConstraint read(const std::string& request) {
  return read_constraint(parse_json(request, "request"));
}

TextConstraint text_of(const std::string& request) {
  return read(request).text.value_or(TextConstraint{.kind = Kind::regex, .source = "no constraint"});
}

// "param pointer: message" of the error; empty if there is none.
std::string problem(const std::string& request) {
  try {
    read(request);
  } catch (const ConstraintError& error) {
    return error.param() + " " + error.what();
  }
  return {};
}

constexpr const char* two_tools =
    R"("tools": [{"type": "function", "function": {"name": "a", "strict": true, "parameters": {"type": "object"}}},
                 {"type": "function", "function": {"name": "b"}}])";

std::string with_tools(const std::string& fields) {
  return std::string("{") + two_tools + (fields.empty() ? "" : ", " + fields) + "}";
}

std::vector<std::string> names(const ReplyConstraint& constraint) {
  std::vector<std::string> names;
  for (const OfferedFunction& function : constraint.functions) names.push_back(function.name);
  return names;
}

TEST(ReadConstraint, FindsNothingInAPlainRequest) {
  EXPECT_TRUE(read(R"({"messages": [], "temperature": 1})").is_empty());
  EXPECT_TRUE(read(R"({"response_format": {"type": "text"}, "grammar": "", "format": ""})").is_empty());
  EXPECT_TRUE(read(R"({"response_format": null, "tools": null, "json_object": false})").is_empty());
}

TEST(ReadConstraint, ReadsASchemaInTheWordsOfEachApi) {
  for (
      const char* request : {
          R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "strict": true, "schema": {"type": "null"}}}})",
          R"({"response_format": {"type": "json_schema", "schema": {"type": "null"}}})",
          R"({"response_format": {"type": "json_object", "schema": {"type": "null"}}})",
          R"({"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": "null"}}}})",
          R"({"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "null"}}}})",
          R"({"output_format": {"type": "json_schema", "schema": {"type": "null"}}})",
          R"({"json_schema": {"type": "null"}})",
          R"({"schema": {"type": "null"}})",
          R"({"guided_json": {"type": "null"}})",
          R"({"guided_json": "{\"type\":\"null\"}"})",
          R"({"structured_outputs": {"json": {"type": "null"}}})",
          R"({"format": {"type": "null"}})",
      }) {
    const TextConstraint text = text_of(request);
    EXPECT_EQ(text.kind, Kind::schema) << request;
    EXPECT_EQ(text.source, R"({"type":"null"})") << request;
  }
}

TEST(ReadConstraint, ReadsTheOtherKinds) {
  EXPECT_EQ(text_of(R"({"response_format": {"type": "json_object"}})").kind, Kind::json_object);
  EXPECT_EQ(text_of(R"({"format": "json"})").kind, Kind::json_object);
  EXPECT_EQ(text_of(R"({"json_object": true})").kind, Kind::json_object);
  EXPECT_EQ(text_of(R"({"guided_regex": "a+"})"), text_of(R"({"guided_regex": "a+"})"));
  EXPECT_EQ(text_of(R"({"structured_outputs": {"regex": "a+"}})").source, "a+");
  EXPECT_EQ(text_of(R"({"grammar": "root ::= \"a\""})").kind, Kind::grammar);
  EXPECT_EQ(text_of(R"({"guided_choice": ["x", "y"]})").choices, (std::vector<std::string>{"x", "y"}));
  EXPECT_TRUE(text_of(R"({"structured_outputs": {"json": {}, "disable_any_whitespace": true}})").compact);
}

TEST(ReadConstraint, KeepsTheOrderOfKeys) {
  EXPECT_EQ(text_of(R"({"schema": {"properties": {"z": {}, "a": {}}}})").source,
            R"({"properties":{"z":{},"a":{}}})");
}

TEST(ReadConstraint, RefusesTwoConstraintsOnTheSameText) {
  EXPECT_EQ(problem(R"({"regex": "a", "schema": {}})"),
            "regex /regex: the answer is already constrained by /schema: expected only one constraint");
  EXPECT_EQ(problem(R"({"structured_outputs": {"regex": "a", "choice": ["b"]}})"),
            "structured_outputs.choice /structured_outputs/choice: the answer is already constrained by "
            "/structured_outputs/regex: expected only one constraint");
  EXPECT_EQ(problem(with_tools(R"("regex": "a")")), "");
}

TEST(ReadConstraint, NamesTheFieldThatIsWrong) {
  EXPECT_EQ(
      problem(R"({"response_format": {"type": "xml"}})"),
      "response_format.type /response_format/type: expected \"text\", \"json_object\" or \"json_schema\", "
      "found \"xml\"");
  EXPECT_EQ(problem(R"({"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}})"),
            "response_format.json_schema.schema /response_format/json_schema/schema: "
            "missing; expected a JSON schema");
  EXPECT_EQ(problem(R"({"choices": ["a", 1]})"), "choices[1] /choices/1: expected a string, found 1");
  EXPECT_EQ(problem(R"({"response_format": {}})"),
            "response_format.type /response_format/type: missing; expected a string");
  EXPECT_EQ(problem(R"({"tools": [{"type": "web_search"}]})"),
            "tools[0].type /tools/0/type: expected \"function\", found \"web_search\"");
  EXPECT_EQ(
      problem(R"({"tools": [{"type": "function", "function": {"name": "a b"}}]})"),
      "tools[0].function.name /tools/0/function/name: expected letters, digits, _ - and ., at most 128, "
      "found \"a b\"");
}

TEST(ReadConstraint, LeavesNothingOfStructuredOutputsOut) {
  const std::string expected =
      "expected \"json\", \"json_object\", \"regex\", \"choice\" or \"grammar\", found ";
  EXPECT_EQ(problem(R"({"structured_outputs": {"regexp": "a"}})"),
            "structured_outputs.regexp /structured_outputs/regexp: " + expected + "\"a\"");
  EXPECT_EQ(problem(R"({"structured_outputs": {}})"),
            "structured_outputs /structured_outputs: " + expected + "{}");
  EXPECT_NE(problem(R"({"structured_outputs": {"disable_any_whitespace": true}})"), "");
  EXPECT_NE(problem(R"({"structured_outputs": {"json": {}, "disable_additional_properties": true}})"), "");
  EXPECT_EQ(problem(R"({"structured_outputs": {"json": {}, "regex": null, "structural_tag": null}})"), "");
}

TEST(ReadConstraint, ReadsBlanksOfJson) {
  EXPECT_TRUE(text_of(R"({"schema": {}, "whitespace": "compact"})").compact);
  EXPECT_TRUE(text_of(R"({"json_object": true, "whitespace": "compact"})").compact);
  EXPECT_FALSE(text_of(R"({"schema": {}, "whitespace": "flexible"})").compact);
  EXPECT_TRUE(read(R"({"whitespace": "compact"})").is_empty());
  EXPECT_EQ(problem(R"({"schema": {}, "whitespace": "none"})"),
            "whitespace /whitespace: expected \"flexible\" or \"compact\", found \"none\"");
  const Json merged = merged_constraint_fields({{"whitespace", "compact"}}, {{"schema", true}});
  EXPECT_TRUE(read_constraint(merged).text->compact);
}

TEST(ReadConstraint, RefusesBlanksOfJsonBesideWhatIsNotJson) {
  EXPECT_EQ(problem(R"({"regex": "a", "whitespace": "compact"})"),
            "whitespace /whitespace: for JSON only, but the answer is constrained by /regex");
  EXPECT_EQ(problem(R"({"choices": ["a"], "whitespace": "flexible"})"),
            "whitespace /whitespace: for JSON only, but the answer is constrained by /choices");
  // Of all lines, to those that are JSON.
  const Json merged = merged_constraint_fields({{"whitespace", "compact"}}, {{"regex", "a"}});
  EXPECT_EQ(read_constraint(merged).text->source, "a");
}

TEST(ReadConstraint, ReadsWhichFunctionsMayOrMustBeCalled) {
  const ReplyConstraint automatic = read(with_tools(""));
  EXPECT_EQ(names(automatic), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(automatic.calls, CallMode::automatic);
  EXPECT_TRUE(automatic.functions[0].strict);
  EXPECT_EQ(automatic.functions[0].place, "/tools/0/function/parameters");
  EXPECT_EQ(automatic.functions[1].schema, "");

  EXPECT_TRUE(read(with_tools(R"("tool_choice": "none")")).functions.empty());
  EXPECT_EQ(read(with_tools(R"("tool_choice": "required")")).calls, CallMode::required);
  EXPECT_FALSE(read(with_tools(R"("parallel_tool_calls": false)")).parallel_calls);
  for (const char* choice : {R"("b")", R"({"type": "function", "function": {"name": "b"}})",
                             R"({"type": "function", "name": "b"})", R"({"type": "tool", "name": "b"})"}) {
    const ReplyConstraint named = read(with_tools(std::string(R"("tool_choice": )") + choice));
    EXPECT_EQ(names(named), (std::vector<std::string>{"b"})) << choice;
    EXPECT_EQ(named.calls, CallMode::required) << choice;
  }
  const ReplyConstraint allowed = read(with_tools(
      R"("tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "a"}}]}})"));
  EXPECT_EQ(names(allowed), (std::vector<std::string>{"a"}));
  EXPECT_EQ(allowed.calls, CallMode::required);
}

TEST(ReadConstraint, RefusesChoicesThatNoToolFits) {
  EXPECT_EQ(problem(R"({"tool_choice": "required"})"),
            "tool_choice /tool_choice: a call is required, but no tools are offered");
  EXPECT_EQ(problem(with_tools(R"("tool_choice": {"type": "function", "function": {"name": "c"}})")),
            "tool_choice.function.name /tool_choice/function/name: \"c\" is not one of the tools");
  EXPECT_NE(problem(with_tools(R"("tool_choice": "sometimes")")), "");
}

TEST(ReadConstraint, LetsALineReplaceTheConstraintOfAnother) {
  const Json base = {{"schema", {{"type", "null"}}}, {"tools", Json::array()}};
  const Json merged = merged_constraint_fields(base, {{"regex", "a"}});
  EXPECT_FALSE(merged.contains("schema"));
  EXPECT_TRUE(merged.contains("tools"));
  EXPECT_TRUE(merged_constraint_fields(base, {{"tool_choice", "auto"}}).contains("schema"));
}

}  // namespace
}  // namespace inferno
