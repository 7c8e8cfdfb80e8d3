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

TEST(SafePath, TakesTheNamesThatModelsHave) {
  for (const std::string name :
       {"config.json", "model-00001-of-00002.safetensors", "original/consolidated.00.pth", "a/b/c/d.txt",
        ".gitattributes", "Q4_K_M/x-Q4_K_M.gguf", "名前.json", "with space.md", "...", "a..b", "xx:y"}) {
    EXPECT_EQ(unsafe_because(name), "") << name;
    EXPECT_EQ(safe_path(name), fs::path(name));
  }
}

TEST(SafePath, SaysWhyANameIsRefused) {
  EXPECT_EQ(unsafe_because(""), "it is empty");
  EXPECT_EQ(unsafe_because("/etc/passwd"), "it is an absolute path");
  EXPECT_EQ(unsafe_because("a/../../b"), "a part of it is \"..\"");
  EXPECT_EQ(unsafe_because("C:/x"), "it names a drive");
  EXPECT_EQ(unsafe_because("a\0b"s), "it holds a control character");
  EXPECT_EQ(unsafe_because("a\xff"), "it is not UTF-8");
  EXPECT_EQ(unsafe_because("a\xc0\xaf"), "it is not UTF-8");  // an overlong '/'
  EXPECT_EQ(unsafe_because("x\u202egpj.exe"), "it holds a mark that changes the direction of writing");
  EXPECT_EQ(unsafe_because(std::string(300, 'a')), "a part of it has 300 bytes");
  EXPECT_THROW(safe_path("../x"), Error);
}

TEST(SafePath, ShowsNamesWithoutTheirSting) {
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

TEST_F(Beneath, NeverGoesThroughAPlantedLink) {
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
