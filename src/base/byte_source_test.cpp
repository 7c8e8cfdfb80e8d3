#include "base/byte_source.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <fstream>
#include <functional>

#include "base/error.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;

fs::path scratch(const std::string& name, const std::string& contents) {
  const fs::path path = fs::path(testing::TempDir()) / name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

ErrorKind kind_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.kind();
  }
  ADD_FAILURE() << "nothing was thrown";
  return ErrorKind::internal;
}

TEST(FileSource, ReadsARangeOfTheFile) {
  const auto file = open_file(scratch("range", "0123456789"));
  std::vector<std::byte> bytes(4);
  file->read(3, bytes);
  EXPECT_EQ(static_cast<char>(bytes[0]), '3');
  EXPECT_EQ(static_cast<char>(bytes[3]), '6');
}

TEST(FileSource, RefusesARangeThatLeavesTheFile) {
  const auto file = open_file(scratch("short", "0123"));
  std::vector<std::byte> bytes(4);
  EXPECT_EQ(kind_of([&] { file->read(1, bytes); }), ErrorKind::corrupt);
  EXPECT_EQ(kind_of([&] { file->read(~0ull - 1, bytes); }), ErrorKind::corrupt);
}

TEST(FileSource, ReportsAFileThatShrinksWhileItIsOpen) {
  const fs::path path = scratch("shrinks", "0123456789");
  const auto file = open_file(path);
  fs::resize_file(path, 5);
  std::vector<std::byte> bytes(10);
  EXPECT_EQ(kind_of([&] { file->read(0, bytes); }), ErrorKind::corrupt);
}

TEST(FileSource, ReportsAFileThatIsWrittenToWhileItIsOpen) {
  const fs::path path = scratch("written", "0123456789");
  const auto file = open_file(path);
  EXPECT_NO_THROW(file->check_unchanged());
  const auto before = fs::last_write_time(path);
  std::fstream(path, std::ios::binary | std::ios::in | std::ios::out) << "abc";  // as long as before
  fs::last_write_time(path, before + std::chrono::milliseconds(5));
  std::vector<std::byte> bytes(10);
  EXPECT_NO_THROW(file->read(0, bytes));
  EXPECT_EQ(kind_of([&] { file->check_unchanged(); }), ErrorKind::corrupt);
}

TEST(FileSource, ReportsAFileThatGrewOrShrankBetweenReads) {
  const fs::path path = scratch("grows", "0123456789");
  const auto file = open_file(path);
  fs::resize_file(path, 11);
  EXPECT_EQ(kind_of([&] { file->check_unchanged(); }), ErrorKind::corrupt);
  fs::resize_file(path, 9);
  EXPECT_EQ(kind_of([&] { file->check_unchanged(); }), ErrorKind::corrupt);
}

TEST(FileSource, IsNotDisturbedByAnotherFileOfItsName) {
  const fs::path path = scratch("replaced", "0123456789");
  const auto file = open_file(path);
  fs::rename(scratch("replacement", "abc"), path);
  std::vector<std::byte> bytes(10);
  EXPECT_NO_THROW(file->read(0, bytes));
  EXPECT_NO_THROW(file->check_unchanged());
}

TEST(FileSource, OpensOnlyRegularFiles) {
  const fs::path folder = fs::path(testing::TempDir());
  EXPECT_EQ(kind_of([&] { open_file(folder / "no such file"); }), ErrorKind::not_found);
  EXPECT_EQ(kind_of([&] { open_file(folder); }), ErrorKind::corrupt);
  const fs::path pipe = folder / "pipe";
  fs::remove(pipe);
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(kind_of([&] { open_file(pipe); }), ErrorKind::corrupt);
}

}  // namespace
}  // namespace inferno
