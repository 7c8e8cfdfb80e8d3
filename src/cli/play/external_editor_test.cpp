#include "cli/play/external_editor.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "support/temporary_directory.h"

namespace inferno::play {
namespace {

class Editor : public ::testing::Test {
 protected:
  std::string edited(const std::string& command, const std::string& text) const {
    return edit_text(command, text, folder_.path());
  }
  std::string refused(const std::string& command) const {
    try {
      return "accepted " + edited(command, "text");
    } catch (const Error& error) {
      return error.what();
    }
  }

  const TemporaryDirectory folder_;
};

TEST_F(Editor, ReturnsWhatTheEditorSaved) {
  EXPECT_EQ(edited("sed -i s/one/two/", "one\nmore"), "two\nmore");
  EXPECT_EQ(edited("true", ""), "");
}

TEST_F(Editor, KeepsTheFilePrivateAndRemovesIt) {
  const std::string modes = (folder_.path() / "modes").string();
  edited("f() { stat -c %a \"$(dirname \"$1\")\" \"$1\" > " + modes + "; }; f", "text");
  EXPECT_EQ(read_file(modes, 100), "700\n600\n");
  std::filesystem::remove(modes);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

TEST_F(Editor, SaysHowItFailed) {
  EXPECT_EQ(refused("exit 3;"), "exit 3;: the editor ended with exit code 3");
  EXPECT_EQ(refused("kill -9 $$;"), "kill -9 $$;: the editor was ended by signal 9");
  EXPECT_EQ(refused("no-such-editor 2>&-"), "no-such-editor 2>&-: the editor cannot be started");
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

}  // namespace
}  // namespace inferno::play
