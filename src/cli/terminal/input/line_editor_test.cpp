#include "cli/terminal/input/line_editor.h"

#include <gtest/gtest.h>

#include <random>

namespace inferno::terminal {
namespace {

// Types raw bytes, as a terminal would send them; returns what became of the last key.
Outcome type(LineEditor& editor, std::string_view bytes) {
  KeyDecoder decoder;
  Outcome outcome = Outcome::editing;
  for (const Key& key : decoder.push(bytes)) outcome = editor.apply(key);
  return outcome;
}

std::string typed(std::string_view bytes) {
  LineEditor editor;
  type(editor, bytes);
  return std::string(editor.text()).insert(editor.cursor(), "|");
}

TEST(LineEditor, InsertsWhereTheCursorStands) {
  EXPECT_EQ(typed("hello"), "hello|");
  EXPECT_EQ(typed("hllo\x1b[D\x1b[D\x1b[D"
                  "e"),
            "he|llo");
  EXPECT_EQ(typed("日本\x1b[D語"), "日語|本");
}

TEST(LineEditor, MovesAndErasesWholeCharacters) {
  EXPECT_EQ(typed("ae\u0301\x7f"), "a|");
  EXPECT_EQ(typed("👩‍👧x\x1b[D\x7f"), "|x");
  EXPECT_EQ(typed("日x\x01\x1b[3~"), "|x");
}

TEST(LineEditor, KnowsTheUsualControlKeys) {
  EXPECT_EQ(typed("abc\x01"), "|abc");
  EXPECT_EQ(typed("abc\x01\x05"), "abc|");
  EXPECT_EQ(typed("abc\x02\x02\x0b"), "a|");
  EXPECT_EQ(typed("abc\x02\x15"), "|c");
  EXPECT_EQ(typed("one two  \x17"), "one |");
  EXPECT_EQ(typed("one two\x17\x19\x19"), "one twotwo|");
  EXPECT_EQ(typed("abc\x01\x04"), "|bc");
}

TEST(LineEditor, MovesByWords) {
  EXPECT_EQ(typed("one, two\x1b"
                  "b"),
            "one, |two");
  EXPECT_EQ(typed("one, two\x1b"
                  "b\x1b"
                  "b\x1b"
                  "f"),
            "one|, two");
  EXPECT_EQ(typed("one two\x1b[1;5D\x1b\x7f"), "|two");
}

TEST(LineEditor, SaysHowEditingEnds) {
  LineEditor editor;
  EXPECT_EQ(type(editor, "\x04"), Outcome::left);
  EXPECT_EQ(type(editor, "x\x04"), Outcome::editing);
  EXPECT_EQ(type(editor, "\x03"), Outcome::interrupted);
  EXPECT_EQ(type(editor, "\x0c"), Outcome::clear_screen);
  EXPECT_EQ(type(editor, "\r"), Outcome::submitted);
  EXPECT_EQ(editor.text(), "x");
}

TEST(LineEditor, WalksThroughHistoryAndKeepsTheDraft) {
  LineEditor editor({"first", "second"});
  type(editor, "dra\x1b[A");
  EXPECT_EQ(editor.text(), "second");
  type(editor, "\x10\x10\x10");
  EXPECT_EQ(editor.text(), "first");
  type(editor, "!\x1b[B\x1b[B");
  EXPECT_EQ(editor.text(), "dra");
  type(editor, "\x1b[B\x1b[A\x1b[A");
  EXPECT_EQ(editor.text(), "first!");
}

TEST(LineEditor, PastesLinesWithoutSendingThem) {
  LineEditor editor;
  EXPECT_EQ(type(editor, "\x1b[200~a\rb\x1b[201~"), Outcome::editing);
  EXPECT_EQ(editor.text(), "a\nb");
  EXPECT_EQ(type(editor, "\r"), Outcome::submitted);
}

TEST(LineEditor, GoesOnUntilTheQuotesAreClosed) {
  LineEditor editor;
  EXPECT_EQ(type(editor, "\"\"\"one\r"), Outcome::editing);
  EXPECT_EQ(type(editor, "two\r"), Outcome::editing);
  EXPECT_EQ(type(editor, "\"\"\"\r"), Outcome::submitted);
  EXPECT_EQ(without_quotes(editor.text()), "one\ntwo");
}

TEST(LineEditor, MovesUpAndDownInsideSeveralLines) {
  LineEditor editor({"old"});
  type(editor, "abcd\x1b\rxy\x1b[A");
  EXPECT_EQ(editor.cursor(), 2u);  // the same column, one line up
  type(editor, "\x1b[B\x1b[B");
  EXPECT_EQ(editor.text(), "abcd\nxy");
  type(editor, "\x1b[A\x1b[A");
  EXPECT_EQ(editor.text(), "old");
}

TEST(LineEditor, KeepsColumnsOfWideCharacters) {
  LineEditor editor;
  type(editor, "日本語\x1b\rab\x1b[A");
  EXPECT_EQ(editor.cursor(), std::string("日").size());
}

TEST(LineEditor, SurvivesAnyBytesWithACleanTextAndACursorBetweenCharacters) {
  std::mt19937 random(11);
  const std::vector<std::string> pieces = {"a",
                                           " ",
                                           "日",
                                           "e\u0301",
                                           "\x1b[A",
                                           "\x1b[D",
                                           "\x1b[C",
                                           "\x1b[3~",
                                           "\x7f",
                                           "\x17",
                                           "\x15",
                                           "\x0b",
                                           "\x19",
                                           "\x01",
                                           "\x05",
                                           "\x1b\r",
                                           "\x1b[200~",
                                           "\x1b[201~",
                                           "\xff",
                                           "\xe6\x97",
                                           "\x1b",
                                           "\x1b[",
                                           "\x9b",
                                           "\t",
                                           "\x1b"
                                           "b",
                                           "\x10",
                                           "\x0e"};
  for (int scene = 0; scene < 500; ++scene) {
    LineEditor editor({"old", "older\nlines"});
    KeyDecoder decoder;
    for (int key = 0; key < 60; ++key) {
      for (const Key& found : decoder.push(pieces[random() % pieces.size()])) editor.apply(found);
      if (random() % 8 == 0) {
        for (const Key& found : decoder.flush()) editor.apply(found);
      }
      ASSERT_LE(editor.cursor(), editor.text().size());
      ASSERT_EQ(clean_input(editor.text()), editor.text());
      ASSERT_EQ(clean_input(editor.text().substr(0, editor.cursor())),
                editor.text().substr(0, editor.cursor()));
    }
  }
}

TEST(Quotes, KeepWhatStandsAroundThem) {
  EXPECT_EQ(without_quotes("plain"), "plain");
  EXPECT_EQ(without_quotes("\"\"\"a\"\"\" b"), "a b");
  EXPECT_EQ(without_quotes("\"\"\"\na\n\n\"\"\""), "a\n");
  EXPECT_TRUE(is_unfinished("\"\"\""));
  EXPECT_FALSE(is_unfinished("\"\"\"\"\"\""));
  EXPECT_FALSE(is_unfinished("say \"\"\""));
  EXPECT_TRUE(is_unfinished("/system \"\"\"be\nbrief"));
  EXPECT_FALSE(is_unfinished("/system \"\"\"be\nbrief\"\"\""));
  EXPECT_FALSE(is_unfinished("/system be brief"));
}

// Completes the whole text before the cursor from a list, unless the text has a blank.
std::optional<Completion> fruit(std::string_view before) {
  if (before.find(' ') != std::string_view::npos) return std::nullopt;
  Completion completion;
  for (const char* name : {"apple", "apricot", "日本", "日木", "plum"}) {
    if (std::string_view(name).starts_with(before))
      completion.candidates.push_back({.text = name, .ending = "!", .shown = {}});
  }
  return completion;
}

TEST(LineEditor, CompletesAsFarAsTheCandidatesAgree) {
  LineEditor editor({}, fruit);
  EXPECT_EQ(type(editor, "a\t"), Outcome::editing);
  EXPECT_EQ(editor.text(), "ap");
  EXPECT_EQ(type(editor, "\t"), Outcome::list);
  EXPECT_EQ(editor.candidates().size(), 2u);
  EXPECT_EQ(type(editor, "r\t"), Outcome::editing);
  EXPECT_EQ(editor.text(), "apricot!");
  EXPECT_EQ(type(editor, " \t"), Outcome::editing);
  EXPECT_EQ(editor.text(), "apricot! \t");
}

TEST(LineEditor, ListsOnlyWhenTabComesTwice) {
  LineEditor editor({}, fruit);
  type(editor, "ap\t");
  EXPECT_EQ(type(editor, "x\x7f\t"), Outcome::editing);
  EXPECT_EQ(type(editor, "\t"), Outcome::list);
  type(editor, "\x15x\t");
  EXPECT_EQ(type(editor, "\t"), Outcome::editing);
  EXPECT_EQ(editor.text(), "x");
  type(editor, "\x15日\t");
  EXPECT_EQ(editor.text(), "日");
}

TEST(LineEditor, SearchesTheHistoryAndLeavesTheSearchEitherWay) {
  LineEditor editor({"tell a story", "tell me", "stop"});
  type(editor, "draft\x12tell");
  EXPECT_EQ(editor.search_prompt(), "(reverse-i-search)`tell': ");
  EXPECT_EQ(editor.text(), "tell me");
  type(editor, "\x12");
  EXPECT_EQ(editor.text(), "tell a story");
  type(editor, "\x07");
  EXPECT_EQ(editor.search_prompt(), std::nullopt);
  EXPECT_EQ(editor.text(), "draft");
  EXPECT_EQ(type(editor, "\x12story\x05!"), Outcome::editing);  // Ctrl-E ends the search and does its work
  EXPECT_EQ(editor.text(), "tell a story!");
  EXPECT_EQ(type(editor, "\x12stop\r"), Outcome::submitted);
  EXPECT_EQ(editor.text(), "stop");
}

}  // namespace
}  // namespace inferno::terminal
