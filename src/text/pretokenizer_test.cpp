#include "text/pretokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace inferno {
namespace {

using testing::ElementsAre;

class Collect final : public PieceSink {
 public:
  void take(std::string_view piece) override { pieces.emplace_back(piece); }
  std::vector<std::string> pieces;
};

std::vector<std::string> split(std::vector<PreTokenizerStep> steps, std::string_view text,
                               bool at_start = true, bool read_bytes = false) {
  RegexScratch scratch;
  Collect sink;
  PreTokenizer(std::move(steps), read_bytes).run({.text = text, .at_start = at_start}, scratch, sink);
  return sink.pieces;
}

PreTokenizerStep by(const char* pattern, SplitBehavior behavior, bool invert = false) {
  return pretokenize::ByPattern{std::make_shared<const Regex>(pattern, "test"), behavior, invert};
}

TEST(PreTokenizer, LeavesTheTextWholeWithoutSteps) {
  EXPECT_THAT(split({}, "a b"), ElementsAre("a b"));
}

TEST(PreTokenizer, TreatsMatchesByTheBehaviour) {
  const auto dashes = [](SplitBehavior behavior) {
    return split({by("-", behavior)}, "the-final--countdown");
  };
  EXPECT_THAT(dashes(SplitBehavior::removed), ElementsAre("the", "final", "countdown"));
  EXPECT_THAT(dashes(SplitBehavior::isolated), ElementsAre("the", "-", "final", "-", "-", "countdown"));
  EXPECT_THAT(dashes(SplitBehavior::merged_with_previous), ElementsAre("the-", "final-", "-", "countdown"));
  EXPECT_THAT(dashes(SplitBehavior::merged_with_next), ElementsAre("the", "-final", "-", "-countdown"));
  EXPECT_THAT(dashes(SplitBehavior::contiguous), ElementsAre("the", "-", "final", "--", "countdown"));
}

TEST(PreTokenizer, MergesMatchesAtTheEdgesOfTheText) {
  EXPECT_THAT(split({by("-", SplitBehavior::merged_with_previous)}, "-a-"), ElementsAre("-", "a-"));
  EXPECT_THAT(split({by("-", SplitBehavior::merged_with_next)}, "-a-"), ElementsAre("-a", "-"));
}

TEST(PreTokenizer, InvertsWhatCountsAsAMatch) {
  EXPECT_THAT(split({by("\\w+|[^\\w\\s]+", SplitBehavior::removed, true)}, "Hey you! "),
              ElementsAre("Hey", "you", "!"));
}

TEST(PreTokenizer, SplitsByTextAndByKindOfCharacter) {
  EXPECT_THAT(split({pretokenize::ByText{" ", SplitBehavior::merged_with_previous}}, "a b  c"),
              ElementsAre("a ", "b ", " ", "c"));
  EXPECT_THAT(split({pretokenize::ByCharacter{CharacterKind::numeric, SplitBehavior::isolated}}, "a12²"),
              ElementsAre("a", "1", "2", "²"));
  EXPECT_THAT(split({pretokenize::ByCharacter{CharacterKind::numeric, SplitBehavior::contiguous}}, "a12b"),
              ElementsAre("a", "12", "b"));
  EXPECT_THAT(split({pretokenize::ByCharacter{CharacterKind::punctuation, SplitBehavior::isolated}}, "a,b„c"),
              ElementsAre("a", ",", "b", "„", "c"));
  EXPECT_THAT(split({pretokenize::ByCharacter{CharacterKind::white_space, SplitBehavior::removed}},
                    " a\tb\xE3\x80\x80"),
              ElementsAre("a", "b"));
}

TEST(PreTokenizer, RunsItsStepsOnThePiecesOfTheStepBefore) {
  EXPECT_THAT(split({by(" ", SplitBehavior::removed), by("\\d", SplitBehavior::isolated)}, "a1 22"),
              ElementsAre("a", "1", "2", "2"));
}

TEST(PreTokenizer, AddsAPrefixSpaceUnlessThereIsOne) {
  EXPECT_THAT(split({pretokenize::AddPrefixSpace{}}, "a"), ElementsAre(" a"));
  EXPECT_THAT(split({pretokenize::AddPrefixSpace{}}, " a"), ElementsAre(" a"));
}

TEST(PreTokenizer, LaterStepsSeeTheByteAlphabetAndTheModelGetsBytes) {
  // In the byte alphabet the second byte of é is ©, which Falcon's digit step ignores, and the space is Ġ.
  EXPECT_THAT(split({pretokenize::WriteBytes{}, by("Ġ", SplitBehavior::isolated)}, "é b", true, true),
              ElementsAre("é", " ", "b"));
}

TEST(PreTokenizer, MetaspaceMarksWhereWordsBegin) {
  const auto meta = [](PrependScheme scheme, bool splits) {
    return PreTokenizerStep(pretokenize::Metaspace{.replacement = "▁", .prepend = scheme, .split = splits});
  };
  EXPECT_THAT(split({meta(PrependScheme::always, true)}, "Hey  you"), ElementsAre("▁Hey", "▁", "▁you"));
  EXPECT_THAT(split({meta(PrependScheme::always, true)}, " Hey"), ElementsAre("▁Hey"));
  EXPECT_THAT(split({meta(PrependScheme::always, false)}, "Hey you"), ElementsAre("▁Hey▁you"));
  EXPECT_THAT(split({meta(PrependScheme::never, true)}, "Hey you"), ElementsAre("Hey", "▁you"));
  EXPECT_THAT(split({meta(PrependScheme::first, true)}, "Hey", true), ElementsAre("▁Hey"));
  EXPECT_THAT(split({meta(PrependScheme::first, true)}, "Hey", false), ElementsAre("Hey"));
}

}  // namespace
}  // namespace inferno
