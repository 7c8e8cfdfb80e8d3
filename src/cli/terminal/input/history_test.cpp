#include "cli/terminal/input/history.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace inferno::terminal {
namespace {

namespace fs = std::filesystem;
using Entries = std::vector<std::string>;

class HistoryFile : public testing::Test {
 protected:
  const TemporaryDirectory folder_;
  const fs::path file_ = folder_.path() / "state" / "inferno" / "history";
};

TEST_F(HistoryFile, LivesOnInTheNextSession) {
  {
    History history(file_);
    EXPECT_TRUE(history.entries().empty());
    EXPECT_TRUE(history.add("one"));
    EXPECT_TRUE(history.add("two\nlines \\n"));
  }
  EXPECT_EQ(History(file_).entries(), (Entries{"one", "two\nlines \\n"}));
}

TEST_F(HistoryFile, IsForTheUserAlone) {
  History(file_).add("secret");
  struct stat status{};
  ASSERT_EQ(stat(file_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0600u);
  ASSERT_EQ(stat(file_.parent_path().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777u, 0700u);
}

TEST_F(HistoryFile, KeepsNeitherBlanksNorRepetitions) {
  History history(file_);
  for (const char* entry : {"a", "a", " ", "b", "a"}) history.add(entry);
  EXPECT_EQ(history.entries(), (Entries{"a", "b", "a"}));
}

TEST_F(HistoryFile, StaysShort) {
  fs::create_directories(file_.parent_path());
  {
    std::ofstream out(file_);
    for (int entry = 0; entry < 5000; ++entry) out << "entry " << entry << "\n";
  }
  const History history(file_);
  EXPECT_EQ(history.entries().size(), History::max_entries);
  EXPECT_EQ(history.entries().back(), "entry 4999");
  EXPECT_EQ(History(file_).entries(), history.entries());
  EXPECT_LT(fs::file_size(file_), 20'000u);
}

TEST_F(HistoryFile, CannotSmuggleControlCharactersIn) {
  fs::create_directories(file_.parent_path());
  std::ofstream(file_) << "a\x1b[2Jb\n\xff\n";
  EXPECT_EQ(History(file_).entries(), (Entries{"a[2Jb", "\xEF\xBF\xBD"}));
}

TEST_F(HistoryFile, SaysWhenItCannotBeWritten) {
  std::ofstream(folder_.path() / "state") << "a file where a folder should be";
  History history(file_);
  EXPECT_FALSE(history.add("kept for this session"));
  EXPECT_EQ(history.entries().size(), 1u);
}

}  // namespace
}  // namespace inferno::terminal
