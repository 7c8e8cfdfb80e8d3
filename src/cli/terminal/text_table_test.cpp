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

TEST(TextTable, StacksCellsOnANarrowScreen) {
  const std::vector<TableColumn> titles = {{"NAME"}, {"SIZE", Align::right}, {"PLACE"}};
  const std::vector<std::vector<std::string>> rows = {{"a longer name", "12 kB", "built in"}};
  EXPECT_EQ(text_table(titles, rows, 30), text_table(titles, rows));
  EXPECT_EQ(text_table(titles, rows, 29), "NAME\n  SIZE  PLACE\na longer name\n  12 kB  built in\n");
  EXPECT_EQ(text_table(titles, rows, 12), "NAME\n  SIZE\n  PLACE\na longer name\n  12 kB\n  built in\n");
}

TEST(TextGrid, FillsTheScreenDownwards) {
  EXPECT_EQ(text_grid({"a", "bcd", "日本", "e", "f"}, 20), "a     日本  f\nbcd   e\n");
  EXPECT_EQ(text_grid({"longer than the screen", "b"}, 10), "longer than the screen\nb\n");
  EXPECT_EQ(text_grid({}, 10), "");
}

}  // namespace
}  // namespace inferno
