#include "cli/builtin_model.h"

#include <gtest/gtest.h>

#include <cstdlib>
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

TEST(BuiltinModel, IsUnpackedUnderTheCacheFolder) {
  const TemporaryDirectory folder;
  const Environment environment({{"XDG_CACHE_HOME", folder.path().string()}}, std::nullopt);
  const auto model = unpack_model(two_files, environment);
  EXPECT_EQ(model.parent_path(), folder.path() / "inferno");
  EXPECT_EQ(contents(model / "weights"), std::string("a\0b", 3));
  EXPECT_EQ(unpack_model(two_files, environment), model);
}

TEST(BuiltinModel, IsMendedWhenAFileWasChanged) {
  const TemporaryDirectory folder;
  const Environment environment({{"XDG_CACHE_HOME", folder.path().string()}}, std::nullopt);
  const auto model = unpack_model(two_files, environment);
  std::ofstream(model / "weights") << "xxx";
  std::filesystem::remove(model / "config.json");
  unpack_model(two_files, environment);
  EXPECT_EQ(contents(model / "weights"), std::string("a\0b", 3));
  EXPECT_EQ(contents(model / "config.json"), "{}");
}

TEST(BuiltinModel, GoesToATemporaryFolderWhenTheCacheCannotBeWritten) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "inferno") << "a file where a folder should be";
  const Environment environment({{"XDG_CACHE_HOME", folder.path().string()}}, std::nullopt);
  EXPECT_EQ(contents(unpack_model(two_files, environment) / "config.json"), "{}");
}

TEST(BuiltinModel, IsKnownByTheNameOfItsFolder) {
  const TemporaryDirectory folder;
  const Environment environment({{"XDG_CACHE_HOME", folder.path().string()}}, std::nullopt);
  EXPECT_TRUE(is_builtin(builtin_model(environment)));
  EXPECT_FALSE(is_builtin("/models/builtin-0123456789abcdef"));
  EXPECT_FALSE(is_builtin("builtin"));
  EXPECT_FALSE(is_builtin(""));
}

TEST(BuiltinModel, IsAModelThatOpens) {
  const TemporaryDirectory folder;
  const Environment environment({{"XDG_CACHE_HOME", folder.path().string()}}, std::nullopt);
  EXPECT_EQ(open_checkpoint(builtin_model(environment))->architecture(), "gpt_oss");
}

}  // namespace
}  // namespace inferno
