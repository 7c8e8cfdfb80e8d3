#include "cli/terminal/input/line_view.h"

#include <gtest/gtest.h>

namespace inferno::terminal {
namespace {

using Rows = std::vector<std::string>;
const Prompts short_prompts = {.first = "> ", .next = ". ", .style = {}};

TEST(Layout, BreaksLongLinesAtTheEdge) {
  const Layout layout = lay_out(short_prompts, "abcdef", 6, 6);
  EXPECT_EQ(layout.rows, (Rows{"> abcd", "ef"}));
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 2);
}

TEST(Layout, PutsTheCursorOnANewRowBehindAFullOne) {
  const Layout layout = lay_out(short_prompts, "abcd", 4, 6);
  EXPECT_EQ(layout.rows, (Rows{"> abcd", ""}));
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 0);
}

TEST(Layout, KeepsWideCharactersWhole) {
  const Layout layout = lay_out(short_prompts, "a日本", 0, 5);
  EXPECT_EQ(layout.rows, (Rows{"> a日", "本"}));
  EXPECT_EQ(layout.cursor_column, 2);
}

TEST(Layout, PutsAPromptBeforeEveryLine) {
  const Layout layout = lay_out(short_prompts, "a\nb", 2, 80);
  EXPECT_EQ(layout.rows, (Rows{"> a", ". b"}));
  EXPECT_EQ(layout.cursor_row, 1u);
  EXPECT_EQ(layout.cursor_column, 2);
}

TEST(Layout, SurvivesAScreenWithoutRoom) {
  EXPECT_FALSE(lay_out(short_prompts, "日本", 3, 0).rows.empty());
}

TEST(LineView, DrawsOverWhatItDrewBefore) {
  LineView view(short_prompts);
  EXPECT_EQ(view.draw("abcdef", 6, {6, 24}), "\r\x1b[K> abcd\r\n\x1b[Kef\x1b[J\r\x1b[2C");
  EXPECT_EQ(view.draw("abcde", 1, {6, 24}), "\r\x1b[1A\x1b[K> abcd\r\n\x1b[Ke\x1b[J\x1b[1A\r\x1b[3C");
  EXPECT_EQ(view.finish("abc", {6, 24}), "\r\x1b[K> abc\r\n\x1b[J");
}

TEST(LineView, BeginsWhereTheLastDrawingWentWhenTheWindowBecameNarrower) {
  EXPECT_EQ(reflowed_rows("\x1b[1;32m>>> \x1b[0mabcdef", 5), 2u);
  EXPECT_EQ(reflowed_rows("日本語", 5), 2u);
  LineView view(short_prompts);
  view.draw("abcdefghij", 10, {8, 24});  // "> abcdef", "ghij"
  // The terminal made "> abc", "def", "ghij" of it.
  EXPECT_EQ(view.draw("abcdefghij", 10, {5, 24}),
            "\r\x1b[2A\x1b[K> abc\r\n\x1b[Kdefgh\r\n\x1b[Kij\x1b[J\r\x1b[2C");
  // A wider window leaves rows alone that end with a line break.
  EXPECT_EQ(view.draw("abcdefghij", 0, {20, 24}), "\r\x1b[2A\x1b[K> abcdefghij\x1b[J\r\x1b[2C");
  view.draw("abcdefgh", 3, {20, 24});
  // The cursor is on the first character of the second row.
  EXPECT_EQ(view.draw("abcdefgh", 3, {5, 24}), "\r\x1b[1A\x1b[K> abc\r\n\x1b[Jdefgh\r");
}

TEST(LineView, ShowsThePartAroundTheCursorOfATallText) {
  LineView view(short_prompts);
  const std::string drawn = view.draw("1\n2\n3\n4", 7, {80, 3});
  EXPECT_EQ(drawn, "\r\x1b[K. 3\r\n\x1b[K. 4\x1b[J\r\x1b[3C");
}

}  // namespace
}  // namespace inferno::terminal
