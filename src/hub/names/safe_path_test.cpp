#include "hub/names/safe_path.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/error.h"
#include "base/utf8.h"
#include "support/temporary_directory.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

TEST(SafePath, AcceptsNamesOfRealModels) {
  for (const std::string name :
       {"config.json", "model-00001-of-00002.safetensors", "original/consolidated.00.pth", "a/b/c/d.txt",
        ".gitattributes", "Q4_K_M/x-Q4_K_M.gguf", "名前.json", "with space.md", "...", "a..b", "xx:y"}) {
    EXPECT_EQ(unsafe_reason(name), "") << name;
    EXPECT_EQ(safe_path(name), fs::path(name));
  }
}

TEST(SafePath, SaysWhyANameIsRefused) {
  EXPECT_EQ(unsafe_reason(""), "it is empty");
  EXPECT_EQ(unsafe_reason("/etc/passwd"), "it is an absolute path");
  EXPECT_EQ(unsafe_reason("a/../../b"), "it has a path component \"..\"");
  EXPECT_EQ(unsafe_reason("C:/x"), "it starts with a drive letter");
  EXPECT_EQ(unsafe_reason("a\0b"s), "it contains a control character");
  EXPECT_EQ(unsafe_reason("a\xff"), "it is not UTF-8");
  EXPECT_EQ(unsafe_reason("a\xc0\xaf"), "it is not UTF-8");  // an overlong '/'
  EXPECT_EQ(unsafe_reason("x\u202egpj.exe"), "it contains a bidirectional control character");
  EXPECT_EQ(unsafe_reason(std::string(300, 'a')), "it has a path component of 300 bytes");
  EXPECT_THROW(safe_path("../x"), Error);
}

TEST(SafePath, EscapesNamesForMessages) {
  EXPECT_EQ(quote("a\x1b[2J\n"), "\"a\\x1b[2J\\x0a\"");
  EXPECT_EQ(quote("\xff\xfe"), "\"\\xff\\xfe\"");
  EXPECT_LT(quote(std::string(5000, 'x')).size(), 200u);
}

class Beneath : public testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(top_ / "root");
    fs::create_directory(top_ / "elsewhere");
  }

  const TemporaryDirectory folder_;
  const fs::path top_ = folder_.path();
};

TEST_F(Beneath, MakesFolders) {
  make_folders_beneath(top_ / "root", "a/b/c");
  make_folders_beneath(top_ / "root", "a/b/c");
  EXPECT_TRUE(fs::is_directory(top_ / "root/a/b/c"));
  EXPECT_TRUE(stays_beneath(top_ / "root", "a/b/c/file"));
}

TEST_F(Beneath, NeverFollowsAPlantedLink) {
  fs::create_directory_symlink(top_ / "elsewhere", top_ / "root/a");
  EXPECT_THROW(make_folders_beneath(top_ / "root", "a/b"), Error);
  EXPECT_FALSE(stays_beneath(top_ / "root", "a/file"));
  EXPECT_TRUE(fs::is_empty(top_ / "elsewhere"));
  EXPECT_FALSE(stays_beneath(top_ / "root", "../elsewhere/file"));
}

TEST_F(Beneath, FollowsALinkToTheRootItself) {
  fs::create_directory_symlink(top_ / "root", top_ / "link");
  make_folders_beneath(top_ / "link", "a");
  EXPECT_TRUE(fs::is_directory(top_ / "root/a"));
}

TEST_F(Beneath, RefusesAFileWhereAFolderShouldBe) {
  std::ofstream(top_ / "root/a") << "file";
  EXPECT_THROW(make_folders_beneath(top_ / "root", "a/b"), Error);
}

}  // namespace
}  // namespace inferno::hub
