#include "hub/cache/layout.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/utf8.h"
#include "hub/names/safe_path.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;

const std::string commit(40, 'c');
const std::string etag(64, 'e');

RepositoryLayout model() {
  return CacheLayout("/cache").repository({"org", "name", "", "", ""});
}

TEST(CacheLayout, MatchesOtherTools) {
  const std::string folder = "/cache/models--org--name";
  EXPECT_EQ(model().folder(), folder);
  EXPECT_EQ(model().blob(etag), folder + "/blobs/" + etag);
  EXPECT_EQ(model().lock(etag), "/cache/.locks/models--org--name/" + etag + ".lock");
  EXPECT_EQ(model().ref("refs/pr/1"), folder + "/refs/refs/pr/1");
  EXPECT_EQ(model().snapshot_file(commit, "a/b.json"), folder + "/snapshots/" + commit + "/a/b.json");
  EXPECT_EQ(model().tree(commit), folder + "/trees/" + commit + ".json");
  EXPECT_EQ(model().no_exist(commit, "x"), folder + "/.no_exist/" + commit + "/x");
  EXPECT_EQ(CacheLayout("/cache").repository({"", "gpt2", "", "", ""}).folder(), "/cache/models--gpt2");
  EXPECT_EQ(CacheLayout("/cache").tag(), "/cache/CACHEDIR.TAG");
}

TEST(CacheLayout, LinksFromASnapshotToItsBlob) {
  for (const char* path : {"x", "a/x", "a/b/c/x"}) {
    const fs::path link = model().snapshot_file(commit, path);
    const fs::path target = RepositoryLayout::link_target(path, etag);
    EXPECT_EQ((link.parent_path() / target).lexically_normal(), model().blob(etag)) << path;
  }
}

TEST(CacheLayout, ReadsTheNamesOfFolders) {
  EXPECT_EQ(id_of_folder("models--org--name"), "org/name");
  EXPECT_EQ(id_of_folder("models--gpt2"), "gpt2");
  for (const char* other :
       {"datasets--org--name", ".locks", "models--", "models----x", "models--..--x", "version.txt"}) {
    EXPECT_EQ(id_of_folder(other), std::nullopt) << other;
  }
}

const std::string hostile_names[] = {
    "",
    ".",
    "..",
    "../x",
    "../../x",
    "a/..",
    "a/../..",
    "a/../../x",
    "a/./b",
    "./a",
    "/",
    "/x",
    "//x",
    "/etc/passwd",
    "~",
    "a//b",
    "a/",
    "\\",
    "\\\\host\\share",
    "a\\..\\b",
    "..\\x",
    "C:",
    "C:x",
    "C:\\x",
    "c:/x",
    "z:..",
    "\0"s,
    "a\0b"s,
    "../\0"s,
    "\n",
    "a\nb",
    "\r",
    "\t",
    "\x1b[2J",
    "\x7f",
    "\xc2\x80",
    "\xc2\x9b"
    "2J",
    "\xff",
    "\xc0\xaf",
    "\xe0\x80\xaf",
    "\xf0\x80\x80\xaf",
    "\xed\xa0\x80",
    "\xf5\x80\x80\x80",
    "a\xc2",
    "\u202etxt",
    "a\u2066b",
    "\u200f",
    "\u061c",
    "\u2028",
    "a/\u202e",
    std::string(256, 'a'),
    "a/" + std::string(300, 'b'),
    std::string(5000, '/'),
    std::string(2000, 'a'),
    "a/" + std::string(1100, 'b'),
    "..",
    "x/../../../../../../etc/cron.d/x",
    "....//..",
    "../models--org--name-evil/x",
    "a/..\0/b"s,
    "%2e%2e/..",
    "snapshots/../../..",
    "./..",
    "..//",
    ".//.",
};

TEST(CacheLayout, LetsNoHostileNameOutOfTheCache) {
  EXPECT_GE(std::size(hostile_names), 60u);
  for (const std::string& name : hostile_names) {
    const auto layout = model();
    // "~" is an ordinary name: no shell expands it.
    if (name == "~") {
      EXPECT_EQ(layout.snapshot_file(commit, name).parent_path(), layout.snapshot(commit));
    } else {
      EXPECT_THROW(layout.snapshot_file(commit, name), Error) << quote(name);
      EXPECT_THROW(layout.no_exist(commit, name), Error) << quote(name);
      EXPECT_THROW(layout.ref(name), Error) << quote(name);
      EXPECT_THROW(CacheLayout("/cache").repository({"org", name, "", "", ""}), Error) << quote(name);
      EXPECT_THROW(RepositoryLayout::link_target(name, etag), Error) << quote(name);
    }
    EXPECT_THROW(layout.blob(name), Error) << quote(name);
    EXPECT_THROW(layout.lock(name), Error) << quote(name);
    EXPECT_THROW(layout.snapshot(name), Error) << quote(name);
    EXPECT_THROW(layout.tree(name), Error) << quote(name);
  }
}

TEST(CacheLayout, RefusesInvalidHashesAndIds) {
  EXPECT_THROW(model().blob(std::string(40, 'E')), Error);
  EXPECT_THROW(model().blob(std::string(41, 'e')), Error);
  EXPECT_THROW(model().snapshot("main"), Error);
  EXPECT_THROW(CacheLayout("/cache").repository({"or/g", "name", "", "", ""}), Error);
  EXPECT_THROW(CacheLayout("/cache").repository({"or--g", "name", "", "", ""}), Error);
  EXPECT_THROW(CacheLayout("/cache").repository({"org", "", "", "", ""}), Error);
}

}  // namespace
}  // namespace inferno::hub
