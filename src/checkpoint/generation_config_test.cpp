#include "checkpoint/generation_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "checkpoint/config_json.h"
#include "support/caught_error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GenerationConfig parse(std::string_view json) {
  return generation_config(parse_config(json, "generation_config.json"));
}

TEST(GenerationConfig, ReadsAllValues) {
  const GenerationConfig g = parse(R"({"eos_token_id": [200002, 199999], "bos_token_id": 1, "pad_token_id": 0,
    "temperature": 0.6, "top_k": 20, "top_p": 0.95, "repetition_penalty": 1.05, "do_sample": true})");
  EXPECT_THAT(g.eos, ElementsAre(200002, 199999));
  EXPECT_EQ(g.bos, 1);
  EXPECT_EQ(g.pad, 0);
  EXPECT_EQ(g.temperature, 0.6f);
  EXPECT_EQ(g.top_k, 20);
  EXPECT_EQ(g.top_p, 0.95f);
  EXPECT_EQ(g.repetition_penalty, 1.05f);
}

TEST(GenerationConfig, AcceptsOneEosTokenAndNothingElse) {
  const GenerationConfig g = parse(R"({"eos_token_id": 2})");
  EXPECT_THAT(g.eos, ElementsAre(2));
  EXPECT_FALSE(g.bos || g.pad || g.temperature || g.top_k || g.top_p || g.repetition_penalty);
}

TEST(GenerationConfig, TreatsMinusOneAsNone) {
  const GenerationConfig g =
      parse(R"({"eos_token_id": [-1, 7], "bos_token_id": -1, "pad_token_id": -1, "top_k": -1})");
  EXPECT_THAT(g.eos, ElementsAre(7));
  EXPECT_FALSE(g.bos || g.pad);
  EXPECT_EQ(g.top_k, 0);
}

TEST(GenerationConfig, RefusesValuesOutsideTheirRange) {
  for (const char* json :
       {R"({"eos_token_id": "2"})", R"({"eos_token_id": 2.5})", R"({"eos_token_id": -2})",
        R"({"eos_token_id": [1, "x"]})", R"({"eos_token_id": [2147483648]})", R"({"bos_token_id": [1]})",
        R"({"pad_token_id": 1e10})", R"({"temperature": -0.1})", R"({"temperature": "hot"})",
        R"({"temperature": 1e300})", R"({"top_k": -2})", R"({"top_k": 1.5})", R"({"top_k": [1]})",
        R"({"top_p": 1.5})", R"({"top_p": -0.5})", R"({"repetition_penalty": 0})",
        R"({"repetition_penalty": -1})"}) {
    const Error error = caught_error([&] { parse(json); });
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << json;
    EXPECT_THAT(error.what(), HasSubstr("generation_config.json"));
  }
}

TEST(GenerationConfig, FallsBackToTheTokensInConfigJson) {
  const TemporaryDirectory directory;
  EXPECT_THAT(read_generation_config(directory.path()).eos, IsEmpty());
  directory.write("config.json", R"({"eos_token_id": 2, "bos_token_id": 1, "temperature": 3.0})");
  EXPECT_THAT(read_generation_config(directory.path()).eos, ElementsAre(2));
  EXPECT_FALSE(read_generation_config(directory.path()).temperature);
  directory.write("generation_config.json", R"({"eos_token_id": [5, 6], "temperature": 0.5})");
  const GenerationConfig g = read_generation_config(directory.path());
  EXPECT_THAT(g.eos, ElementsAre(5, 6));
  EXPECT_EQ(g.bos, 1);
  EXPECT_EQ(g.temperature, 0.5f);
}

}  // namespace
}  // namespace inferno
