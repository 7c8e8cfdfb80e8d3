#include "base/file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/error.h"
#include "base/utf8.h"
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

TEST(OutputPath, IsNeitherADeviceNorEmpty) {
  EXPECT_THROW(output_path("/dev/null"), Error);
  EXPECT_THROW(output_path(""), Error);
}

TEST(PlainFileName, StaysInsideItsDirectory) {
  for (const char* good :
       {"model.safetensors", "a", "...", "model-00001-of-00002.safetensors", "h\xC3\xA9"}) {
    EXPECT_TRUE(is_plain_file_name(good)) << good;
  }
  for (const std::string& bad :
       {std::string(), std::string("."), std::string(".."), std::string("/etc/passwd"), std::string("../x"),
        std::string("a/b"), std::string("a\\b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string(256, 'x'), std::string("\xFF")}) {
    EXPECT_FALSE(is_plain_file_name(bad)) << quote(bad);
  }
}

ErrorKind refusal(const std::filesystem::path& path, std::uint64_t max_bytes, Pipes pipes) {
  try {
    read_file(path, max_bytes, pipes);
  } catch (const Error& error) {
    return error.kind();
  }
  return ErrorKind::internal;
}

TEST(ReadFile, ReadsAWholeFileWithinTheLimit) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "file") << "12345678";
  for (const Pipes pipes : {Pipes::refuse, Pipes::accept}) {
    EXPECT_EQ(read_file(folder.path() / "file", 8, pipes), "12345678");
    EXPECT_EQ(refusal(folder.path() / "file", 7, pipes), ErrorKind::unsupported);
    EXPECT_EQ(refusal(folder.path() / "none", 8, pipes), ErrorKind::not_found);
    EXPECT_EQ(refusal(folder.path(), 8, pipes), ErrorKind::corrupt);
  }
}

TEST(ReadFile, ReadsPipesAndDevicesOnlyOnRequest) {
  EXPECT_EQ(refusal("/dev/null", 8, Pipes::refuse), ErrorKind::corrupt);
  EXPECT_EQ(read_file("/dev/null", 8, Pipes::accept), "");
  EXPECT_EQ(refusal("/dev/zero", 1 << 20, Pipes::accept), ErrorKind::unsupported);
}

TEST(ReadStart, ReadsFilesWithoutASizeAndCutsLongOnes) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "file") << "12345678";
  EXPECT_EQ(read_start(folder.path() / "file", 3), "123");
  EXPECT_EQ(read_start(folder.path() / "file", 100), "12345678");
  EXPECT_FALSE(read_start(folder.path() / "none", 100));
  EXPECT_FALSE(read_start("/proc/self/stat", 10).value_or("").empty());
}

}  // namespace
}  // namespace inferno
