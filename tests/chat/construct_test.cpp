// Every construct of the language on its own, compared with Python's Jinja2: make_constructs.py writes
// constructs.json.
#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "chat/json.h"
#include "reference.h"
#include "support/source_dir.h"

namespace inferno {
namespace {

struct Answer {
  bool refused = false;
  std::string text;
};

Answer answer(const std::string& source, const Json& variables) {
  jinja::RenderOptions options;
  options.clock = [] { return reference::parse_time("2025-08-05T14:30:00"); };
  try {
    return {false, jinja::Template::parse(source, "test").render(variables, options).text};
  } catch (const Error& error) {
    const bool expected = error.kind() == ErrorKind::unsupported || error.kind() == ErrorKind::corrupt;
    EXPECT_TRUE(expected) << source << ": " << error.what();
    EXPECT_NE(std::string(error.what()).find("test, line "), std::string::npos) << error.what();
    return {true, error.what()};
  }
}

class Constructs : public ::testing::TestWithParam<const char*> {};

TEST_P(Constructs, RenderAsPythonDoes) {
  const std::string path = std::string(INFERNO_SOURCE_DIR) + "/tests/chat/constructs.json";
  const Json file = parse_json(reference::read_file(path), path);
  int cases = 0;
  for (const Json& test : file.at("cases")) {
    if (test.at("topic") != GetParam()) continue;
    ++cases;
    const std::string source = test.at("template");
    const Answer got = answer(source, file.at("variables"));
    EXPECT_EQ(got.refused, test.contains("error")) << source << "\n" << got.text << "\n" << test.dump();
    if (got.refused || !test.contains("text")) continue;
    EXPECT_EQ(got.text, test.at("text").get<std::string>()) << source;
  }
  EXPECT_GE(cases, 15);
}

INSTANTIATE_TEST_SUITE_P(Topics, Constructs,
                         ::testing::Values("literals", "arithmetic", "comparison", "logic", "access",
                                           "string methods", "percent", "text filters", "tojson",
                                           "sequence filters", "number filters", "tests", "globals", "output",
                                           "whitespace", "if", "for", "set", "macro", "blocks"),
                         [](const auto& topic) {
                           std::string name = topic.param;
                           std::replace(name.begin(), name.end(), ' ', '_');
                           return name;
                         });

}  // namespace
}  // namespace inferno
