#include "cli/terminal/input/key.h"

#include <gtest/gtest.h>

namespace inferno::terminal {
namespace {

using Keys = std::vector<Key>;

Key key(KeyKind kind, std::string text = {}) {
  return {kind, std::move(text)};
}

TEST(KeyDecoder, ReadsTextAndControlKeys) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.push("h\xC3\xA9\x01\r\x7f"), (Keys{key(KeyKind::text, "hé"), key(KeyKind::control, "a"),
                                                       key(KeyKind::enter), key(KeyKind::backspace)}));
  EXPECT_FALSE(decoder.is_waiting());
}

TEST(KeyDecoder, ReadsArrowsInEveryDialect) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.push("\x1b[A\x1bOB\x1b[1;5C\x1b"
                         "b\x1b[3~\x1b[H"),
            (Keys{key(KeyKind::up), key(KeyKind::down), key(KeyKind::word_right), key(KeyKind::word_left),
                  key(KeyKind::erase), key(KeyKind::home)}));
}

TEST(KeyDecoder, WaitsForTheRestOfACharacter) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.push("a\xE6\x97"), Keys{key(KeyKind::text, "a")});
  EXPECT_TRUE(decoder.is_waiting());
  EXPECT_EQ(decoder.push("\xA5"), Keys{key(KeyKind::text, "日")});
  EXPECT_FALSE(decoder.is_waiting());
}

TEST(KeyDecoder, WaitsForTheRestOfASequence) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.push("\x1b"), Keys{});
  EXPECT_EQ(decoder.push("[1;"), Keys{});
  EXPECT_EQ(decoder.push("5D"), Keys{key(KeyKind::word_left)});
}

TEST(KeyDecoder, TakesALoneEscapeForTheKeyWhenNothingFollows) {
  KeyDecoder decoder;
  decoder.push("\x1b");
  EXPECT_TRUE(decoder.is_waiting());
  EXPECT_EQ(decoder.flush(), Keys{key(KeyKind::escape)});
  EXPECT_FALSE(decoder.is_waiting());
}

TEST(KeyDecoder, IgnoresSequencesItDoesNotKnow) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.push("\x1b[15~\x1b[1;2Px"), Keys{key(KeyKind::text, "x")});
}

TEST(KeyDecoder, EndsASequenceThatNeverEnds) {
  KeyDecoder decoder;
  decoder.push("\x1b[" + std::string(1000, '1'));
  EXPECT_EQ(decoder.push("\r").back(), key(KeyKind::enter));
}

TEST(KeyDecoder, TakesAPasteWholeHoweverItArrives) {
  KeyDecoder decoder;
  Keys keys;
  for (const char byte : std::string_view("\x1b[200~one\r\ntwo\rthree\x1b[31m\x07\x1b[201~!")) {
    for (Key& found : decoder.push(std::string_view(&byte, 1))) keys.push_back(std::move(found));
  }
  EXPECT_EQ(keys, (Keys{key(KeyKind::paste, "one\ntwo\nthree[31m"), key(KeyKind::text, "!")}));
}

TEST(KeyDecoder, DoesNotGiveUpOnAnOpenPaste) {
  KeyDecoder decoder;
  decoder.push("\x1b[200~half");
  EXPECT_FALSE(decoder.is_waiting());
  EXPECT_EQ(decoder.flush(), Keys{});
  EXPECT_EQ(decoder.push(" way\x1b[201~"), Keys{key(KeyKind::paste, "half way")});
}

TEST(CleanInput, KeepsTabsAndLineBreaksAndNoOtherControls) {
  EXPECT_EQ(clean_input("a\tb\r\nc\rd\x1b[0m\x00\x7f"), "a\tb\nc\nd[0m");
  EXPECT_EQ(clean_input("\xC2\x9B"
                        "31m"),
            "31m");  // a C1 control is a control too
  EXPECT_EQ(clean_input("x\xFFy"), "x\xEF\xBF\xBDy");
}

TEST(KeyDecoder, IgnoresAltWithALetterThatHasNoMeaning) {
  KeyDecoder decoder;
  EXPECT_EQ(decoder.push("\x1b"
                         "d"),
            Keys{});
  EXPECT_EQ(decoder.push("\x1b"
                         "7"),
            Keys{});
  EXPECT_EQ(decoder.push("\x1b"
                         "b"),
            Keys{key(KeyKind::word_left)});
}

}  // namespace
}  // namespace inferno::terminal
