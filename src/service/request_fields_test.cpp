#include "service/request_fields.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

std::string problem_with(const std::string& name, const Json& value) {
  try {
    check_request_field(name, value);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    return error.what();
  }
  return {};
}

TEST(RequestFields, ReadsAPromptOfTokens) {
  const TextRequest request = read_request({{"prompt", {1, 2, 3}}, {"temperature", 0}}, {});
  EXPECT_EQ(request.prompt_tokens, (std::vector<TokenId>{1, 2, 3}));
  EXPECT_FALSE(request.prompt);
  EXPECT_EQ(request.settings.temperature, 0.0f);
}

TEST(RequestFields, ReadsWhatTheCacheMayShare) {
  const TextRequest request =
      read_request({{"prompt", "a"}, {"cache_prompt", false}, {"cache_salt", "mine"}}, {});
  EXPECT_FALSE(request.reuse_prefix);
  EXPECT_EQ(request.cache_scope, "mine");
}

TEST(RequestFields, AreCheckedOneByOne) {
  EXPECT_EQ(problem_with("temperature", 0.5), "");
  EXPECT_EQ(problem_with("tool_choice", "required"), "");  // the tools may follow
  EXPECT_EQ(problem_with("tempratur", 1), "\"tempratur\" is not a field of a request");
  EXPECT_EQ(problem_with("prompt", 7), "prompt: expected a text, found number");
  EXPECT_EQ(problem_with("prompt", {1, "two"}),
            "prompt: expected a text or an array of token ids, found string");
  EXPECT_EQ(problem_with("prompt", {-1}), "prompt: -1 is not a token id");
  EXPECT_NE(problem_with("temperature", -1), "");
  EXPECT_NE(problem_with("choices", "one"), "");
}

}  // namespace
}  // namespace inferno
