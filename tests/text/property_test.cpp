// Properties of all texts, tested on random ones: encoding is lossless if the vocabulary is, streaming equals
// decoding at once, and user text never becomes a control token.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/utf8.h"
#include "support/source_dir.h"
#include "text/random_text.h"
#include "text/reference.h"
#include "text/tokenizer.h"

namespace inferno {
namespace {

using Ids = std::vector<TokenId>;

struct Subject {
  std::string name;
  std::filesystem::path path;
  bool lossless = true;     // except for normalization
  bool space_mark = false;  // writes a space as ▁
};

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

// Our vocabulary is always available; the large ones only with the reference data.
std::vector<Subject> subjects() {
  std::vector<Subject> all = {{"ours", std::filesystem::path(INFERNO_TEST_DATA) / "tokenizer", true, false}};
  const auto folder = reference_folder() / "tokenizers";
  for (const char* name : {"gpt-oss", "gpt2", "llama3", "phi-2", "phi-3", "qwen3"}) {
    if (!std::filesystem::exists(folder / name)) continue;
    all.push_back(
        {name, folder / name, std::string_view(name) != "qwen3", std::string_view(name) == "phi-3"});
  }
  return all;
}

std::string stream(const Tokenizer& tokenizer, const Ids& ids, SpecialTokens special) {
  Detokenizer detokenizer(tokenizer, special);
  std::string text;
  for (const TokenId id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_EQ(utf8::first_invalid(piece), std::nullopt);
    text += piece;
  }
  return text + detokenizer.finish();
}

class Properties : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override { tokenizer_ = load_tokenizer(GetParam().path); }
  std::unique_ptr<Tokenizer> tokenizer_;
};

TEST_P(Properties, DecodingAnEncodedTextGivesItBack) {
  RandomText texts(11);
  for (int round = 0; round < 1500; ++round) {
    std::string text = texts.next(60);
    const Ids ids = tokenizer_->encode(text);
    const std::string back = tokenizer_->decode(ids);
    if (GetParam().space_mark) replace_all(text, "▁", " ");
    if (GetParam().lossless) {
      ASSERT_EQ(back, text);
    }
    ASSERT_EQ(stream(*tokenizer_, ids, SpecialTokens::keep), back);
  }
}

TEST_P(Properties, StreamingAnyTokensGivesWhatDecodingGives) {
  std::mt19937 random(5);
  for (int round = 0; round < 1500; ++round) {
    Ids ids(random() % 40);
    for (TokenId& id : ids) id = static_cast<TokenId>(random() % static_cast<unsigned>(tokenizer_->size()));
    for (const auto special : {SpecialTokens::keep, SpecialTokens::skip}) {
      const std::string text = tokenizer_->decode(ids, special);
      ASSERT_EQ(utf8::first_invalid(text), std::nullopt);
      ASSERT_EQ(stream(*tokenizer_, ids, special), text);
    }
  }
}

TEST_P(Properties, UserTextNeverBecomesASpecialToken) {
  std::vector<std::string> names;
  for (TokenId id = 0; id < tokenizer_->size(); ++id) {
    if (tokenizer_->is_special(id)) names.emplace_back(tokenizer_->bytes(id));
  }
  ASSERT_FALSE(names.empty());
  RandomText texts(23);
  std::mt19937 random(23);
  for (int round = 0; round < 1500; ++round) {
    const std::string text =
        texts.next(10) + names[random() % names.size()] + texts.next(10) + names[random() % names.size()];
    for (const TokenId id : tokenizer_->encode(text)) ASSERT_FALSE(tokenizer_->is_special(id)) << text;
  }
}

// Spans mark the origin of text; without control tokens they must not change the tokens.
TEST_P(Properties, WhereATextIsCutIntoSpansChangesNothing) {
  RandomText texts(42);
  std::mt19937 random(42);
  for (int round = 0; round < 500; ++round) {
    const std::string text = texts.next(40);
    std::size_t cut = text.empty() ? 0 : random() % (text.size() + 1);
    while (cut < text.size() && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) ++cut;
    const std::string_view view = text;
    const std::vector<TextSpan> spans = {{view.substr(0, cut), Origin::trusted},
                                         {view.substr(cut), Origin::user}};
    ASSERT_EQ(tokenizer_->encode_spans(spans), tokenizer_->encode(text)) << text;
  }
}

INSTANTIATE_TEST_SUITE_P(Vocabularies, Properties, testing::ValuesIn(subjects()), [](const auto& scene) {
  std::string name = scene.param.name;
  std::erase(name, '-');
  return name;
});

}  // namespace
}  // namespace inferno
