// The tokenizer of a real trained model, including the files next to tokenizer.json.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "text/reference.h"
#include "text/tokenizer.h"

namespace inferno {
namespace {

using Ids = std::vector<TokenId>;

TEST(RealModel, EncodesThePromptsAndDecodesTheRepliesOfTheReference) {
  const auto folder = reference_folder() / "real" / "TinyStories-656K";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "no reference data at " << folder;
  const auto tokenizer = load_tokenizer(folder);
  std::ifstream file(folder / "golden.json");
  const auto golden = nlohmann::json::parse(file);
  ASSERT_FALSE(golden["cases"].empty());
  for (const auto& scene : golden["cases"]) {
    Ids ids = scene["ids"].get<Ids>();
    EXPECT_EQ(tokenizer->encode_with_special(scene["prompt"].get<std::string>()), ids);
    const Ids reply = scene["greedy_ids"].get<Ids>();
    ids.insert(ids.end(), reply.begin(), reply.end());
    // transformers joined that text with a space before a special token; the tokenizer does not.
    std::string text = scene["greedy_text"].get<std::string>();
    const std::string space_and_end = " <|end_story|>";
    if (text.ends_with(space_and_end)) text.erase(text.size() - space_and_end.size(), 1);
    EXPECT_EQ(tokenizer->decode(ids), text);
  }
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->end_tokens().size(), 1u);
}

}  // namespace
}  // namespace inferno
