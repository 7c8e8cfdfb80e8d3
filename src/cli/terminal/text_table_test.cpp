#include "cli/terminal/text_table.h"

#include <gtest/gtest.h>

namespace inferno {
namespace {

TEST(TextTable, AlignsByWhatIsSeenAndDisarmsWhatIsNot) {
  EXPECT_EQ(text_table({{"NAME"}, {"SIZE", Align::right}, {"NOTE"}},
                       {{"日本", "1.0 GB", "a\nb"}, {"x\x1b[2J", "12 kB", ""}}),
            "NAME        SIZE  NOTE\n"
            "日本      1.0 GB  a b\n"
            "x\\x1b[2J   12 kB  \n");
}

}  // namespace
}  // namespace inferno
