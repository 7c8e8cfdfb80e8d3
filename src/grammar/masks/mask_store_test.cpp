#include "grammar/masks/mask_store.h"

#include <gtest/gtest.h>

#include <random>

#include "grammar/grammar.h"
#include "grammar/matcher.h"
#include "text/tokenizer_scene.h"

namespace inferno::grammar {
namespace {

class MaskScene : public testing::Test {
 protected:
  std::vector<std::uint32_t> written(const StoredMask& stored) const {
    std::vector<std::uint32_t> out(vocabulary_->mask_words() + 2, 0xFFFFFFFF);
    stored.write_to(*vocabulary_, out);
    return out;
  }

  std::unique_ptr<Tokenizer> tokenizer_ = parse_tokenizer(made_up_json(), "scene");
  std::shared_ptr<const Vocabulary> vocabulary_ = make_vocabulary(*tokenizer_);
};

TEST_F(MaskScene, GivesBackEveryMaskAndClearsTheWordsBeyond) {
  std::vector<std::vector<std::uint32_t>> masks = {vocabulary_->plain_mask(), vocabulary_->ordinary_mask(),
                                                   std::vector<std::uint32_t>(vocabulary_->mask_words())};
  masks.push_back(vocabulary_->plain_mask());
  masks.back()[3] ^= 0x10010001;
  std::minstd_rand random(1);
  masks.push_back(masks[0]);
  for (std::uint32_t& word : masks.back()) word = static_cast<std::uint32_t>(random());
  for (std::vector<std::uint32_t>& mask : masks) {
    const auto out = written(StoredMask(*vocabulary_, mask));
    mask.resize(out.size());
    EXPECT_EQ(out, mask);
  }
}

TEST_F(MaskScene, AreSharedByAnswersUnderTheSameConstraint) {
  const auto grammar = compile_schema(R"({"type":"object","properties":{"hello":{"type":"string"}}})");
  const auto shared = std::make_shared<SharedMasks>();
  const auto follow = [&](Matcher matcher) {
    std::vector<std::uint32_t> mask(vocabulary_->mask_words());
    for (const char byte : std::string_view(R"({"hello":"hell","x":1)")) {
      matcher.fill(mask);
      EXPECT_TRUE(matcher.agrees_with_plain_walk(mask));
      EXPECT_TRUE(matcher.take_byte(static_cast<std::uint8_t>(byte)));
    }
  };
  follow({grammar, vocabulary_, shared});
  const std::size_t bytes = shared->bytes();
  EXPECT_GT(bytes, 0U);
  follow({grammar, vocabulary_, shared});
  EXPECT_EQ(shared->bytes(), bytes);
}

TEST_F(MaskScene, BeginAnewWhenTheyAreTooMany) {
  SharedMasks shared;
  const auto mask = std::make_shared<const StoredMask>(*vocabulary_, vocabulary_->plain_mask());
  const std::string long_key(SharedMasks::max_bytes / 4, 'x');
  for (int i = 0; i < 10; ++i) shared.add(long_key + std::to_string(i), mask);
  EXPECT_LE(shared.bytes(), SharedMasks::max_bytes);
  EXPECT_EQ(shared.find(long_key + "0"), nullptr);
  EXPECT_NE(shared.find(long_key + "9"), nullptr);
}

}  // namespace
}  // namespace inferno::grammar
