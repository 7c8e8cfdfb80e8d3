#include "service/batch.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(BatchFile, ReadsARequestFromEachLine) {
  const auto lines =
      parse_batch("{\"prompt\":\"a\",\"max_tokens\":3}\n\n{\"id\":7,\"prompt\":\"b\\n\"}\r\n", {});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].request.prompt, "a");
  EXPECT_EQ(lines[0].request.settings.max_tokens, 3);
  EXPECT_EQ(lines[1].number, 3);
  EXPECT_EQ(lines[1].id, 7);
  EXPECT_EQ(lines[1].request.prompt, "b\n");
  EXPECT_EQ(lines[1].error, "");
}

TEST(BatchFile, TakesFromTheFlagsWhatALineDoesNotSay) {
  RequestDefaults defaults;
  defaults.request.settings.max_tokens = 10;
  defaults.request.settings.temperature = 0.0f;
  const auto lines = parse_batch(R"({"prompt":"a","max_tokens":3})", defaults);
  EXPECT_EQ(lines[0].request.settings.max_tokens, 3);
  EXPECT_EQ(lines[0].request.settings.temperature, 0.0f);
}

TEST(BatchFile, MakesAConversationOfAPrompt) {
  const auto lines =
      parse_batch("{\"prompt\":\"hi\",\"chat\":true}\n{\"prompt\":\"hi\",\"system\":\"be terse\"}",
                  {.request = {}, .chat = false, .system = {}});
  EXPECT_EQ(lines[0].request.messages.dump(), R"([{"role":"user","content":"hi"}])");
  EXPECT_EQ(lines[1].request.messages.dump(),
            R"([{"role":"system","content":"be terse"},{"role":"user","content":"hi"}])");
  EXPECT_EQ(lines[1].request.prompt, std::nullopt);
}

TEST(BatchFile, TellsWhatIsWrongWithALineAndGoesOn) {
  const auto lines = parse_batch(
      "{\"prompt\":\n[1]\n{\"id\":\"x\",\"prompt\":\"a\",\"tempratur\":1}\n{}\n{\"prompt\":\"a\","
      "\"messages\":[{}]}\n"
      "{\"prompt\":\"a\",\"top_p\":2}\n{\"prompt\":\"good\"}",
      {});
  ASSERT_EQ(lines.size(), 7u);
  EXPECT_TRUE(lines[0].error.starts_with("line 1:")) << lines[0].error;
  EXPECT_EQ(lines[1].error, "line 2: expected a JSON object");
  EXPECT_EQ(lines[2].error, "line 3: \"tempratur\" is not a field of a request");
  EXPECT_EQ(lines[2].id, "x");
  EXPECT_EQ(lines[3].error, "line 4: expected either \"prompt\" or \"messages\"");
  EXPECT_EQ(lines[4].error, "line 5: expected either \"prompt\" or \"messages\"");
  EXPECT_EQ(lines[5].error, "line 6: top_p: expected a number from 1e-06 to 1, found 2");
  EXPECT_EQ(lines[6].error, "");
}

TEST(BatchFile, IsEmptyWithoutLines) {
  EXPECT_TRUE(parse_batch("\n \n", {}).empty());
}

TEST(Batch, TakesOpenAisLines) {
  const auto lines = parse_batch(
      R"({"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"max_tokens":3}})"
      "\n"
      R"({"custom_id":"b","method":"POST","url":"/v1/embeddings","body":{"input":"hi"}})"
      "\n"
      R"({"custom_id":"c","method":"POST","url":"/v1/completions","body":{"prompt":"hi","n_ways":1}})"
      "\n"
      R"({"custom_id":"d","method":"POST","url":"/v1/completions"})",
      {});
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[3].error, "line 4: body: missing beside \"method\" and \"url\"");
  EXPECT_EQ(lines[0].error, "");
  EXPECT_EQ(lines[0].id, "a");
  EXPECT_EQ(lines[0].request.settings.max_tokens, 3);
  EXPECT_EQ(lines[0].request.messages.at(0).at("content"), "hi");
  EXPECT_EQ(
      lines[1].error,
      "line 2: url: expected \"/v1/chat/completions\" or \"/v1/completions\", found \"/v1/embeddings\"");
  EXPECT_NE(lines[2].error.find("n_ways"), std::string::npos) << lines[2].error;
  EXPECT_EQ(lines[2].id, "c");
}

}  // namespace
}  // namespace inferno
