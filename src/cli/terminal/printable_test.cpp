#include "cli/terminal/printable.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(Printable, LeavesOrdinaryTextAlone) {
  EXPECT_EQ(printable("blk.0.attn_q\tÄ 漢字 🙂\n"), "blk.0.attn_q\tÄ 漢字 🙂\n");
  EXPECT_EQ(printable(""), "");
}

TEST(Printable, EscapesWhatDrivesATerminal) {
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable("a\rb\x7f"), "a\\x0db\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1: a one-character ESC [
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // writes from right to left
}

TEST(Printable, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // longer than it need be
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

}  // namespace
}  // namespace inferno
