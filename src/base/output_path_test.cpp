#include "base/output_path.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace inferno {
namespace {

TEST(OutputPath, IsAFreeNameOrARegularFile) {
  EXPECT_EQ(output_path("/nowhere/file"), "/nowhere/file");
  std::string folder = (std::filesystem::temp_directory_path() / "inferno-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::filesystem::path root = folder;
  std::ofstream(root / "file") << "x";
  std::filesystem::create_symlink("file", root / "link");
  EXPECT_EQ(output_path(root / "file"), root / "file");
  EXPECT_EQ(output_path(root / "link"), std::filesystem::canonical(root) / "file");
  EXPECT_THROW(output_path(root), Error);
  std::filesystem::remove_all(root);
}

TEST(OutputPath, IsNoDeviceAndNotNothing) {
  EXPECT_THROW(output_path("/dev/null"), Error);
  EXPECT_THROW(output_path(""), Error);
}

}  // namespace
}  // namespace inferno
