#include "hub/download/partial_file.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "hub/files.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;

const std::string etag(64, 'a');
constexpr std::uint64_t piece = std::uint64_t{8} << 20;
constexpr std::uint64_t size = 3 * piece + 5'000'000;  // four pieces

fs::path empty_folder(const std::string& name) {
  const fs::path folder = fs::path(testing::TempDir()) / name;
  fs::remove_all(folder);
  fs::create_directories(folder);
  return folder;
}

std::vector<std::byte> bytes(std::uint64_t count, int value = 7) {
  return std::vector<std::byte>(count, static_cast<std::byte>(value));
}

// A process that runs this and then ends as if by kill -9.
template <class Action>
void in_a_process_that_dies(Action action) {
  const pid_t child = ::fork();
  if (child == 0) {
    action();
    ::_exit(0);
  }
  ::waitpid(child, nullptr, 0);
}

std::size_t files_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(PartialFile, ClaimsEachMissingRangeOnceFromTheStart) {
  PartialFile file(empty_folder("claims"), etag, size);
  const Claim first = *file.claim(piece);
  const Claim rest = *file.claim(UINT64_MAX);
  EXPECT_EQ(first.position, 0U);
  EXPECT_EQ(first.end, piece);
  EXPECT_EQ(rest.position, piece);
  EXPECT_EQ(rest.end, size);
  EXPECT_FALSE(file.claim(piece));
  file.release(first);
  EXPECT_EQ(file.claim(piece)->position, 0U);
}

TEST(PartialFile, AddsASmallRestToTheClaimBeforeIt) {
  PartialFile file(empty_folder("rest"), etag, piece + 1000);
  EXPECT_EQ(file.claim(piece)->end, piece + 1000);
}

TEST(PartialFile, HasAFrontThatEndsAtTheFirstGap) {
  PartialFile file(empty_folder("front"), etag, size);
  Claim first = *file.claim(piece), second = *file.claim(piece);
  EXPECT_EQ(file.write(second, bytes(piece)), Written::ok);
  EXPECT_EQ(file.write(first, bytes(1000)), Written::ok);
  EXPECT_EQ(file.wait_for_front(0), 1000U);
  EXPECT_EQ(file.write(first, bytes(piece - 1000)), Written::ok);
  EXPECT_EQ(file.wait_for_front(1000), 2 * piece);
}

TEST(PartialFile, WritesNoMoreBytesThanClaimed) {
  PartialFile file(empty_folder("many"), etag, 100);
  Claim claim = *file.claim(100);
  EXPECT_EQ(file.write(claim, bytes(101)), Written::too_many);
  EXPECT_EQ(file.have(), 100U);
}

TEST(PartialFile, ResumesTheFileOfADeadProcess) {
  const fs::path folder = empty_folder("resume");
  in_a_process_that_dies([&] {
    PartialFile file(folder, etag, size);
    Claim first = *file.claim(piece), second = *file.claim(piece);
    file.write(first, bytes(123'456));
    file.write(second, bytes(1000));
  });
  PartialFile file(folder, etag, size);
  EXPECT_EQ(file.reused(), 124'456U);
  EXPECT_EQ(file.claim(piece)->position, 123'456U);
  EXPECT_EQ(file.claim(piece)->position, piece + 1000);
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(PartialFile, LeavesTheFileOfALiveProcessAlone) {
  const fs::path folder = empty_folder("living");
  PartialFile mine(folder, etag, size);
  Claim claim = *mine.claim(piece);
  mine.write(claim, bytes(1000));
  const PartialFile other(folder, etag, size);
  EXPECT_EQ(other.reused(), 0U);
  EXPECT_EQ(files_in(folder), 2U);
}

TEST(PartialFile, RefusesAJournalOfAnotherSize) {
  const fs::path folder = empty_folder("resized");
  in_a_process_that_dies([&] {
    PartialFile file(folder, etag, size);
    Claim claim = *file.claim(piece);
    file.write(claim, bytes(piece));
  });
  EXPECT_EQ(PartialFile(folder, etag, size - 1).reused(), 0U);
}

TEST(PartialFile, InvalidatesClaimsOnRestart) {
  PartialFile file(empty_folder("anew"), etag, size);
  Claim old = *file.claim(piece);
  EXPECT_EQ(file.write(old, bytes(1000)), Written::ok);
  Claim whole = file.restart();
  EXPECT_EQ(file.write(old, bytes(1000)), Written::stale);
  EXPECT_EQ(whole.end, size);
  EXPECT_EQ(file.have(), 0U);
  EXPECT_EQ(file.write(whole, bytes(2 * piece)), Written::ok);
  EXPECT_EQ(file.wait_for_front(0), 2 * piece);
}

TEST(PartialFile, CommitsWithoutJournalAndRemovesLeftovers) {
  const fs::path folder = empty_folder("commit");
  in_a_process_that_dies([&] { PartialFile(folder, etag, 1000); });
  in_a_process_that_dies([&] {
    PartialFile left(folder, etag, 1000);
    PartialFile file(folder, etag, 1000);
    Claim claim = *file.claim(1000);
    file.write(claim, bytes(1000));
    file.commit(folder / etag);
  });
  EXPECT_EQ(fs::file_size(folder / etag), 1000U);
  PartialFile next(folder, etag, 1000);
  next.commit(folder / etag);
  EXPECT_EQ(files_in(folder), 1U);
}

TEST(PartialFile, KeepsACompleteFileOfADeadProcess) {
  const fs::path folder = empty_folder("whole");
  in_a_process_that_dies([&] {
    PartialFile file(folder, etag, 1000);
    Claim claim = *file.claim(1000);
    file.write(claim, bytes(1000));
    for (const auto& entry : fs::directory_iterator(folder)) fs::resize_file(entry.path(), 1000);
  });
  EXPECT_EQ(PartialFile(folder, etag, 1000).reused(), 1000U);
}

TEST(FileLock, HasOneHolder) {
  const fs::path file = empty_folder("lock") / "x.lock";
  auto held = FileLock::try_take(file);
  ASSERT_TRUE(held);
  EXPECT_FALSE(FileLock::try_take(file));
  held.reset();
  EXPECT_TRUE(FileLock::try_take(file));
}

}  // namespace
}  // namespace inferno::hub
