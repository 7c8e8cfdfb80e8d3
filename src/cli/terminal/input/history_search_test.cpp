#include "cli/terminal/input/history_search.h"

#include <gtest/gtest.h>

namespace inferno::terminal {
namespace {

const std::vector<std::string> entries = {"tell a story", "what is a cat?", "tell me more", "stop"};

std::string shown(const HistorySearch& search) {
  return search.prompt() + (search.match() ? entries[search.match()->entry] : "");
}

TEST(HistorySearch, FindsTheNewestEntryAndThenOlderOnes) {
  HistorySearch search(entries);
  EXPECT_EQ(shown(search), "(reverse-i-search)`': ");
  search.add("t");
  EXPECT_EQ(shown(search), "(reverse-i-search)`t': stop");
  search.add("ell");
  EXPECT_EQ(shown(search), "(reverse-i-search)`tell': tell me more");
  search.older();
  EXPECT_EQ(shown(search), "(reverse-i-search)`tell': tell a story");
  search.older();
  EXPECT_EQ(shown(search), "(failed reverse-i-search)`tell': tell a story");
}

TEST(HistorySearch, ReturnsToWhatTheShorterQueryFound) {
  HistorySearch search(entries);
  search.add("tell");
  search.older();
  search.add("x");
  EXPECT_EQ(shown(search), "(failed reverse-i-search)`tellx': tell a story");
  search.remove_last();
  EXPECT_EQ(shown(search), "(reverse-i-search)`tell': tell a story");
  search.remove_last();  // also what Ctrl-R found for it
  EXPECT_EQ(shown(search), "(reverse-i-search)`': ");
}

}  // namespace
}  // namespace inferno::terminal
