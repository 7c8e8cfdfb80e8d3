#include "grammar/schema/constraints.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <thread>

#include "base/thread_time.h"
#include "grammar/grammar.h"

namespace inferno::grammar {
namespace {

std::string list(int first, int end, const std::function<std::string(int)>& item) {
  std::string out;
  for (int i = first; i < end; ++i) out += (i > first ? "," : "") + item(i);
  return out;
}

std::string enum_of(int first, int end) {
  return R"({"enum":[)" + list(first, end, [](int i) { return std::to_string(i); }) + "]}";
}

std::string key(int i) {
  return fmt::format(R"("k{}")", i);
}

Refusal refusal_of(std::string_view schema) {
  try {
    compile_schema(schema);
  } catch (const RefusedError& error) {
    return error.refusal();
  }
  return {};
}

// Compiles, or is refused; the seconds of CPU time that it took.
double seconds_of(const std::string& schema) {
  const auto start = thread_time();
  try {
    compile_schema(schema, {.limits = {.time = std::chrono::seconds(60)}});
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal().message.find("takes longer"), std::string::npos) << schema.substr(0, 60);
  }
  return std::chrono::duration<double>(thread_time() - start).count();
}

TEST(Constraints, CostNoSquareOfTheirLists) {
  const std::string first = enum_of(0, 15'000), second = enum_of(15'000, 30'000);
  const auto declared = [](int i) { return key(i) + ":{}"; };
  const auto backwards = [](int i) { return key(39'999 - i); };
  for (const std::string& schema :
       {R"({"allOf":[)" + first + "," + second + "]}", R"({"oneOf":[)" + first + "," + second + "]}",
        first.substr(0, first.size() - 1) + R"(,"not":)" + second + "}",
        R"({"type":"object","required":[)" + list(0, 40'000, key) + "]}",
        R"({"type":"object","properties":{)" + list(0, 40'000, declared) + R"(},"required":[)" +
            list(0, 40'000, backwards) + "]}",
        R"({"const":[)" + list(0, 40'000, [](int i) { return std::to_string(i); }) + R"(],"items":)" +
            enum_of(-40'000, 40'000) + "}"}) {
    EXPECT_LT(seconds_of(schema), 3.0) << schema.substr(0, 60);
  }
}

TEST(Constraints, LookAtTheClockWhileTheyCompareValues) {
  const std::string numbers = list(0, 40'000, [](int i) { return std::to_string(i); });
  const std::string texts = list(0, 4'000, [](int i) { return fmt::format(R"({{"const":"{}"}})", i); });
  const std::string schema =
      R"({"const":[)" + numbers + R"(],"items":{"anyOf":[)" + texts + R"(,{"minimum":0}]}})";
  const auto start = thread_time();
  EXPECT_THROW(compile_schema(schema, {.limits = {.time = std::chrono::milliseconds(300)}}), RefusedError);
  EXPECT_LT(std::chrono::duration<double>(thread_time() - start).count(), 2.0);

  std::stop_source cancel;
  const std::jthread canceller([&cancel] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    cancel.request_stop();
  });
  const auto again = thread_time();
  EXPECT_THROW(
      compile_schema(schema, {.cancel = cancel.get_token(), .limits = {.time = std::chrono::minutes(10)}}),
      Error);
  EXPECT_LT(std::chrono::duration<double>(thread_time() - again).count(), 2.0);
}

TEST(Constraints, CompareValuesAsJsonSchemaDoes) {
  Budget budget;
  const auto same = [&budget](std::string_view a, std::string_view b) {
    return canonical_text(parse_json_text(a), budget) == canonical_text(parse_json_text(b), budget);
  };
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("-0", "0.0"));
  EXPECT_TRUE(same("1200", "1.2e3"));
  EXPECT_TRUE(same("0.05", "5E-2"));
  EXPECT_TRUE(same(R"({"a":1,"b":[2]})", R"({"b":[2.0],"\u0061":1})"));
  EXPECT_FALSE(same("1", "true"));
  EXPECT_FALSE(same("1", "10"));
  EXPECT_FALSE(same("1", "-1"));
  EXPECT_FALSE(same("\"1\"", "1"));
  EXPECT_FALSE(same("[1,2]", "[[1],2]"));
  EXPECT_FALSE(same(R"(["a,b"])", R"(["a","b"])"));
  EXPECT_TRUE(same("1e5000", "10e4999"));
  EXPECT_TRUE(same("1e-5000", "0.01E-4998"));
  EXPECT_TRUE(same(std::string(2'000, '7') + "0", std::string(2'000, '7') + "e+01"));
  EXPECT_TRUE(same("0e99999999999999999999", "-0.000"));
  EXPECT_FALSE(same("1e5000", "1e5001"));
  EXPECT_FALSE(same("1e2000000", "1e3000000"));
  EXPECT_THROW(same("1e9999999999999999", "1"), RefusedError);
}

TEST(Constraints, BlameThePartThatIsTooLarge) {
  EXPECT_EQ(refusal_of(R"({"type":"number","allOf":[{"multipleOf":7},{"multipleOf":123456}]})").pointer,
            "/allOf/1/multipleOf");
  EXPECT_EQ(refusal_of(R"({"type":"number","allOf":[{"multipleOf":123456},{"multipleOf":7}]})").pointer,
            "/allOf/0/multipleOf");
  // The values are equal, but too long to be looked at.
  const Refusal huge = refusal_of(R"({"enum":[1e5000],"const":10e4999})");
  EXPECT_EQ(huge.kind, RefusalKind::limit);
  EXPECT_EQ(huge.message, "the number has too many digits (limit 1000)");
  EXPECT_EQ(refusal_of(R"({"type":"integer","const":1e5000})").kind, RefusalKind::limit);
  EXPECT_EQ(refusal_of(R"({"const":12345678901234567890,"multipleOf":7})").message,
            "the number has 20 digits, too many to check multipleOf (limit 15)");
}

TEST(Constraints, BoundTheAddressesThatSchemasRemember) {
  const std::string references = list(0, 10'000, [](int) { return std::string(R"({"$ref":"#/$defs/a"})"); });
  try {
    compile_schema(R"({"$id":"http://x/)" + std::string(300'000, 'a') + R"(/","allOf":[)" + references +
                   R"(],"$defs":{"a":{}}})");
    FAIL() << "each of the schemas would keep a copy";
  } catch (const RefusedError& error) {
    EXPECT_EQ(error.refusal().pointer, "/$id");
    EXPECT_EQ(error.refusal().message, "an address of 300010 bytes (limit 4096)");
  }
}

}  // namespace
}  // namespace inferno::grammar
