#include "base/output_path.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

TEST(OutputPath, IsAFreeNameOrARegularFile) {
  EXPECT_EQ(output_path("/nowhere/file"), "/nowhere/file");
  const TemporaryDirectory folder;
  const std::filesystem::path& root = folder.path();
  std::ofstream(root / "file") << "x";
  std::filesystem::create_symlink("file", root / "link");
  EXPECT_EQ(output_path(root / "file"), root / "file");
  EXPECT_EQ(output_path(root / "link"), std::filesystem::canonical(root) / "file");
  EXPECT_THROW(output_path(root), Error);
}

TEST(OutputPath, IsNoDeviceAndNotNothing) {
  EXPECT_THROW(output_path("/dev/null"), Error);
  EXPECT_THROW(output_path(""), Error);
}

}  // namespace
}  // namespace inferno
