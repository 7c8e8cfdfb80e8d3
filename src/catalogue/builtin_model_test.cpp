#include "catalogue/builtin_model.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "checkpoint/open_checkpoint.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

constexpr EmbeddedFile two_files[] = {{"config.json", "{}"}, {"weights", std::string_view("a\0b", 3)}};

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(BuiltinModel, IsUnpackedIntoTheFirstFolder) {
  const TemporaryDirectory folder;
  const std::vector folders = {folder.path() / "inferno"};
  const auto model = unpack_model(two_files, folders);
  EXPECT_EQ(model.parent_path(), folder.path() / "inferno");
  EXPECT_EQ(contents(model / "weights"), std::string("a\0b", 3));
  EXPECT_EQ(unpack_model(two_files, folders), model);
}

TEST(BuiltinModel, IsRepairedWhenAFileWasChanged) {
  const TemporaryDirectory folder;
  const std::vector folders = {folder.path() / "inferno"};
  const auto model = unpack_model(two_files, folders);
  std::ofstream(model / "weights") << "xxx";
  std::filesystem::remove(model / "config.json");
  unpack_model(two_files, folders);
  EXPECT_EQ(contents(model / "weights"), std::string("a\0b", 3));
  EXPECT_EQ(contents(model / "config.json"), "{}");
}

TEST(BuiltinModel, GoesToTheNextFolderWhenOneCannotBeWritten) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "inferno") << "a file where a folder should be";
  const std::vector folders = {folder.path() / "inferno", folder.path() / "temporary"};
  const auto model = unpack_model(two_files, folders);
  EXPECT_EQ(model.parent_path(), folder.path() / "temporary");
  EXPECT_EQ(contents(model / "config.json"), "{}");
}

TEST(BuiltinModel, WritesThroughNoLinkAndSharesNoFolder) {
  const TemporaryDirectory folder;
  const auto parent = folder.path() / "inferno";
  const auto model = unpack_model(two_files, std::vector{parent});
  const auto victim = folder.path() / "victim";
  std::ofstream(victim) << "precious";
  std::filesystem::remove(model / "config.json");
  std::filesystem::create_symlink(victim, model / "config.json");
  std::filesystem::permissions(parent, std::filesystem::perms::all);
  std::filesystem::permissions(model, std::filesystem::perms::all);
  unpack_model(two_files, std::vector{parent});
  EXPECT_EQ(contents(victim), "precious");
  EXPECT_FALSE(std::filesystem::is_symlink(model / "config.json"));
  EXPECT_EQ(std::filesystem::status(parent).permissions(), std::filesystem::perms::owner_all);
  EXPECT_EQ(std::filesystem::status(model).permissions(), std::filesystem::perms::owner_all);
}

TEST(BuiltinModel, UsesNoFolderOfAnotherUser) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a folder to another user";
  const TemporaryDirectory folder;
  const std::vector folders = {folder.path() / "theirs", folder.path() / "mine"};
  const auto theirs = unpack_model(two_files, std::vector{folders[0]});
  ASSERT_EQ(chown(folders[0].c_str(), 65534, 65534), 0);
  EXPECT_EQ(unpack_model(two_files, folders).parent_path(), folders[1]);

  const auto link = folder.path() / "link";
  std::filesystem::create_directory_symlink(folders[1], link);
  EXPECT_EQ(unpack_model(two_files, std::vector{link}).parent_path(), link);
  ASSERT_EQ(lchown(link.c_str(), 65534, 65534), 0);
  EXPECT_THROW(unpack_model(two_files, std::vector{link}), Error);
}

TEST(BuiltinModel, IsAModelThatOpens) {
  const TemporaryDirectory folder;
  const std::vector folders = {folder.path()};
  EXPECT_EQ(open_checkpoint(unpack_model(builtin_files(), folders))->architecture(), "gpt_oss");
}

}  // namespace
}  // namespace inferno
