// Renders byte for byte what Python's Jinja2 renders, and fails if Jinja2 raises an exception.
#include <gtest/gtest.h>

#include "base/error.h"
#include "chat/json.h"
#include "reference.h"

namespace inferno {
namespace {

using reference::Suite;

void expect_refusal(const jinja::Template& chat_template, const Suite& suite, const Json& test) {
  try {
    const jinja::Rendered rendered = chat_template.render(test.at("input"), suite.options);
    ADD_FAILURE() << "rendered instead of refusing: " << rendered.text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported) << error.what();
    if (test.at("error") == "TemplateError") {
      const std::string message = test.at("message");
      EXPECT_NE(std::string(error.what()).find(message), std::string::npos) << error.what();
    }
  }
}

void run_case(const Suite& suite, const jinja::Template& chat_template, const Json& test) {
  SCOPED_TRACE(suite.name + " / " + test.at("name").get<std::string>());
  if (test.contains("error")) return expect_refusal(chat_template, suite, test);
  try {
    EXPECT_EQ(chat_template.render(test.at("input"), suite.options).text,
              test.at("expected").get<std::string>());
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST(ChatReference, RendersEveryPublicTemplateAsPythonDoes) {
  const auto folder = reference::chat_folder();
  if (!folder) GTEST_SKIP() << "no ../shared/reference/chat";
  int cases = 0;
  for (const Suite& suite : reference::suites(*folder)) {
    const auto chat_template = jinja::Template::parse(suite.source, suite.name);
    for (const Json& test : suite.cases) {
      run_case(suite, chat_template, test);
      ++cases;
    }
  }
  EXPECT_EQ(cases, 52 * 16);
}

}  // namespace
}  // namespace inferno
