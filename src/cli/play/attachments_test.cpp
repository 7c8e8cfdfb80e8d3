#include "cli/play/attachments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/temporary_directory.h"

namespace inferno::play {
namespace {

class Attachments : public ::testing::Test {
 protected:
  Attached attach(std::string_view message) const {
    return attach_files(message, [this](const std::string& name) { return folder_.path() / name; });
  }
  void file(const std::string& name, std::string_view text) const { write_file(folder_.path() / name, text); }
  std::string refused(std::string_view message) const {
    try {
      attach(message);
      return "accepted";
    } catch (const Error& error) {
      return std::string(error.what()) + " / " + error.advice().next;
    }
  }

  const TemporaryDirectory folder_;
};

TEST_F(Attachments, PutsTheTextBelowTheMessage) {
  file("notes.txt", "one\ntwo");
  const Attached attached = attach("Sum up @notes.txt, please");
  EXPECT_EQ(attached.message, "Sum up notes.txt, please\n\nnotes.txt:\n```\none\ntwo\n```");
  ASSERT_EQ(attached.files.size(), 1u);
  EXPECT_EQ(attached.files[0].bytes, 7u);
  EXPECT_EQ(attached.files[0].lines, 2u);
}

TEST_F(Attachments, TakesNamesInBracketsAndQuotes) {
  file("notes.txt", "x\n");
  file("my notes", "y\n");
  const std::string below = "\n\nnotes.txt:\n```\nx\n```";
  for (const auto& [message, sent] : std::vector<std::pair<std::string, std::string>>{
           {"this (@notes.txt) is", "this (notes.txt) is"},
           {"\"@notes.txt\"", "\"notes.txt\""},
           {"'@notes.txt', <@notes.txt>, `@notes.txt`.", "'notes.txt', <notes.txt>, `notes.txt`."},
           {"[(@notes.txt)]!", "[(notes.txt)]!"}})
    EXPECT_EQ(attach(message).message, sent + below);
  EXPECT_EQ(attach("(@\"my notes\")").message, "(my notes)\n\nmy notes:\n```\ny\n```");
  EXPECT_EQ(refused("(@nothing.txt)"), "@nothing.txt: no such file / \\@nothing.txt sends it as text");
  EXPECT_EQ(refused("see @nothing.txt."), "@nothing.txt: no such file / \\@nothing.txt sends it as text");
  EXPECT_EQ(attach("(\\@notes.txt) puts(@notes.txt) (@someone) thanks, @someone.").message,
            "(@notes.txt) puts(@notes.txt) (@someone) thanks, @someone.");
}

TEST_F(Attachments, TakesQuotedNamesAndEachFileOnce) {
  file("my notes", "a ``` fence\n");
  EXPECT_EQ(attach("@\"my notes\" and again @\"my notes\"").message,
            "my notes and again my notes\n\nmy notes:\n````\na ``` fence\n````");
}

TEST_F(Attachments, LeavesAddressesMentionsAndEscapedSignsAlone) {
  file("notes.txt", "x");
  for (const std::string_view text :
       {"write to a@b.org", "@someone said", "@app.route('/x')", "@", "a @ b", "@\"open"})
    EXPECT_EQ(attach(text).message, text);
  EXPECT_EQ(attach("\\@notes.txt is a name").message, "@notes.txt is a name");
  EXPECT_EQ(attach("C:\\@x and \\\\@y").message, "C:\\@x and \\\\@y");
}

TEST_F(Attachments, RefusesWhatIsNoText) {
  file("picture.png", std::string_view("\x89PNG\0", 5));
  file("large.txt", std::string(max_attachment + 1, 'x'));
  std::filesystem::create_directory(folder_.path() / "folder.d");
  EXPECT_EQ(refused("@nothing.txt"), "@nothing.txt: no such file / \\@nothing.txt sends it as text");
  EXPECT_EQ(refused("see @picture.png"), "@picture.png: not a text file / \\@picture.png sends it as text");
  EXPECT_THAT(refused("@large.txt"),
              ::testing::HasSubstr("1.0 MB are too much for a message, the limit is 1.0 MB"));
  EXPECT_EQ(refused("@folder.d"), "@folder.d: a folder, not a text file / \\@folder.d sends it as text");
}

}  // namespace
}  // namespace inferno::play
