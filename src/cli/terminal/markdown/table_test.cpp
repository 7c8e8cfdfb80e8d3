#include "cli/terminal/markdown/table.h"

#include <gtest/gtest.h>

namespace inferno::terminal {
namespace {

using Rows = std::vector<std::string>;

TEST(MarkdownTable, KnowsTheRowBelowTheTitles) {
  EXPECT_TRUE(is_delimiter_row("|---|:-:|--:|"));
  EXPECT_TRUE(is_delimiter_row(" | - | - "));
  EXPECT_FALSE(is_delimiter_row("| a | - |"));
  EXPECT_FALSE(is_delimiter_row("||"));
  EXPECT_FALSE(is_delimiter_row("|"));
}

TEST(MarkdownTable, AlignsColumnsByWhatIsSeen) {
  EXPECT_EQ(aligned_table({"|name|size|", "|---|--:|", "| 日本語 | 1 |", "|x|12345|"}, 80),
            (Rows{"| name   |  size |", "| ------ | ----: |", "| 日本語 |     1 |", "| x      | 12345 |"}));
}

TEST(MarkdownTable, KeepsBarsThatBelongToAText) {
  EXPECT_EQ(aligned_table({"|a|b|", "|-|-|", "|`x|y`|\\||"}, 80),
            (Rows{"| a     | b   |", "| ----- | --- |", "| `x|y` | \\|  |"}));
}

TEST(MarkdownTable, LeavesATableThatIsTooWide) {
  EXPECT_EQ(aligned_table({"|a|b|", "|-|-|", "|a long cell|another one|"}, 20), std::nullopt);
}

}  // namespace
}  // namespace inferno::terminal
