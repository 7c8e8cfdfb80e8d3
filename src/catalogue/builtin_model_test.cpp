#include "catalogue/builtin_model.h"

#include <gtest/gtest.h>

#include <fstream>

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

TEST(BuiltinModel, IsAModelThatOpens) {
  const TemporaryDirectory folder;
  const std::vector folders = {folder.path()};
  EXPECT_EQ(open_checkpoint(unpack_model(builtin_files(), folders))->architecture(), "gpt_oss");
}

}  // namespace
}  // namespace inferno
