#include "service/answer.h"
#include "support/source_dir.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

const std::string model = std::string(INFERNO_TEST_DATA) + "/models/llama";

using Ids = std::vector<TokenId>;

// Hands an encoded text to a reader, token by token, as an engine would.
class AnswerScene : public testing::Test {
 protected:
  AnswerScene() : tokenizer_(load_tokenizer(model)) {}

  std::string read(const std::string& text, PreparedRequest request, bool ends = false) {
    request.generation.prompt = tokenizer_->encode("A prompt:");
    request.generation.stop_tokens = {2};
    reader_ = std::make_unique<AnswerReader>(*tokenizer_, request);
    std::string shown;
    const auto show = [&](const Event& event) {
      for (const ReplyPart& part : reader_->take(event)) shown += std::get<ContentDelta>(part).text;
    };
    Ids tokens = tokenizer_->encode(text);
    if (ends) tokens.push_back(2);
    for (const TokenId token : tokens) show(Sampled{.token = token, .logprob = -1.0f, .alternatives = {}});
    EXPECT_FALSE(reader_->is_over());
    Finished finished;
    finished.reason = ends ? FinishReason::stop : FinishReason::length;
    finished.prompt_tokens = 3;
    finished.seed = 5;
    show(finished);
    EXPECT_TRUE(reader_->is_over());
    return shown;
  }

  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<AnswerReader> reader_;
};

TEST_F(AnswerScene, ShowsEveryLetterOnceAndKeepsTheWhole) {
  const std::string text = " Héllo 日本, wörld\n";
  EXPECT_EQ(read(text, {}), text);
  EXPECT_EQ(reader_->answer().text, text);
  EXPECT_EQ(reader_->answer().finish_reason, "length");
}

TEST_F(AnswerScene, DoesNotShowTheTokenThatEndsIt) {
  EXPECT_EQ(read("The end", {}, /*ends=*/true), "The end");
  EXPECT_EQ(reader_->answer().finish_reason, "stop");
  EXPECT_EQ(reader_->answer().tokens.back().token, 2);
}

TEST_F(AnswerScene, EndsBeforeAStopString) {
  PreparedRequest request;
  request.stops = {"wor"};
  EXPECT_EQ(read("hello world and more", std::move(request)), "hello ");
  EXPECT_TRUE(reader_->is_stopped());
  EXPECT_EQ(reader_->answer().stopped_by, "wor");
  EXPECT_EQ(reader_->answer().finish_reason, "stop");
  EXPECT_LT(reader_->answer().tokens.size(), tokenizer_->encode("hello world and more").size());
}

TEST_F(AnswerScene, GivesBackWhatOnlyLookedLikeAStopString) {
  PreparedRequest request;
  request.stops = {"world peace"};
  EXPECT_EQ(read("hello world", std::move(request)), "hello world");
}

TEST_F(AnswerScene, TellsTheEnginesTrouble) {
  PreparedRequest request;
  AnswerReader reader(*tokenizer_, request);
  EXPECT_TRUE(reader.take(Failed{"the device is gone"}).empty());
  EXPECT_TRUE(reader.is_over());
  EXPECT_EQ(reader.failure(), "the device is gone");
}

TEST_F(AnswerScene, BecomesJson) {
  read("ab", {});
  const Json json = json_of(reader_->answer(), *tokenizer_, /*with_logprobs=*/true);
  EXPECT_EQ(json.at("text"), "ab");
  EXPECT_EQ(json.at("prompt_tokens"), 3);
  EXPECT_EQ(json.at("seed"), 5);
  EXPECT_EQ(json.at("completion_tokens"), json.at("logprobs").at("content").size());
  EXPECT_EQ(json.at("timings").at("prompt_n"), 3);
}

}  // namespace
}  // namespace inferno
