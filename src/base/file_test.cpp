#include "base/file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
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

TEST(WriteFile, SaysWhyItCannot) {
  const TemporaryDirectory folder;
  write_file(folder.path() / "a", "long text");
  write_file(folder.path() / "a", "short", Readers::owner);
  EXPECT_EQ(read_file(folder.path() / "a", 100), "short");
  write_file(folder.path() / "own", "x", Readers::owner);
  EXPECT_EQ(std::filesystem::status(folder.path() / "own").permissions(),
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  const auto why = [](const std::filesystem::path& path) -> std::string {
    try {
      write_file(path, "x");
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(why(folder.path()), folder.path().string() + ": cannot write the file: Is a directory");
  EXPECT_EQ(why(folder.path() / "no/x"),
            (folder.path() / "no/x").string() + ": cannot write the file: No such file or directory");
}

TEST(ReplaceFile, KeepsTheFileIfTheDiskIsFull) {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder.write("talk.json", "before");
  rlimit before{};
  ::getrlimit(RLIMIT_FSIZE, &before);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  ::setrlimit(RLIMIT_FSIZE, &none);
  EXPECT_THROW(replace_file(file, "after"), Error);
  EXPECT_THROW(replace_file(folder.path() / "new", "after"), Error);
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(read_file(file, 100), "before");
  const auto entries = std::filesystem::directory_iterator(folder.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);  // neither a new file nor a temporary one
}

TEST(ReplaceFile, KeepsLinksAndPermissions) {
  const TemporaryDirectory folder;
  const std::filesystem::path file = folder.write("talk.json", "before"), link = folder.path() / "link";
  std::filesystem::permissions(file, std::filesystem::perms(0604));
  std::filesystem::create_symlink("talk.json", link);
  replace_file(link, "after", Readers::owner);
  EXPECT_EQ(read_file(file, 100), "after");
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0604));
  std::filesystem::create_symlink("fresh", folder.path() / "to_fresh");
  replace_file(folder.path() / "to_fresh", "new", Readers::owner);
  EXPECT_EQ(read_file(folder.path() / "fresh", 100), "new");
  EXPECT_EQ(std::filesystem::status(folder.path() / "fresh").permissions(), std::filesystem::perms(0600));
}

TEST(ReplaceFile, WritesToDevicesAndSaysWhyItCannot) {
  replace_file("/dev/null", "x");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
  const TemporaryDirectory folder;
  const std::filesystem::path missing = folder.path() / "no/x";
  try {
    replace_file(missing, "x");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), missing.string() + ": cannot write the file: No such file or directory");
  }
  // What /dev/fd/N stands for is written to, not replaced.
  const std::filesystem::path file = folder.write("open", "before");
  std::FILE* open = std::fopen(file.c_str(), "r+");
  ASSERT_NE(open, nullptr);
  replace_file("/dev/fd/" + std::to_string(::fileno(open)), "after");
  char text[6] = {};
  EXPECT_EQ(std::fread(text, 1, 5, open), 5u);
  EXPECT_STREQ(text, "after");
  std::fclose(open);
}

}  // namespace
}  // namespace inferno
