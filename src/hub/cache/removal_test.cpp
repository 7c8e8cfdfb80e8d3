#include "hub/cache/removal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "hub/cache/scene.h"
#include "hub/files.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class CacheRemoval : public testing::Test {
 protected:
  // Two snapshots share the weights 'a' and have different configurations.
  void two_snapshots() const {
    for (const char commit : {'1', '2'}) cache_.link("o/n", commit, "model.safetensors", 'a');
    cache_.blob("o/n", 'a', std::string(5000, 'x'));
    cache_.file("o/n", '1', "config.json", 'b', "old");
    cache_.file("o/n", '2', "config.json", 'c', "newer");
    cache_.ref("o/n", "main", '2');
  }
  CachedRepository repository() const { return *scan_repository(cache_.root(), "models--o--n"); }
  RemovalPlan plan(const char* name) const { return plan_removal(repository(), parse_hub_name(name)); }
  bool has_blob(char letter) const { return fs::exists(cache_.layout("o/n").blob(CacheScene::etag(letter))); }

  CacheScene cache_;
};

TEST_F(CacheRemoval, KeepsBlobsThatAnotherSnapshotUses) {
  two_snapshots();
  const RemovalPlan removal = plan("o/n@1111111");
  EXPECT_THAT(removal.models, ElementsAre("o/n@111111111111"));
  EXPECT_EQ(removal.bytes, 3u);
  EXPECT_EQ(removal.kept_bytes, 5000u);
  carry_out(removal);
  EXPECT_TRUE(has_blob('a'));
  EXPECT_FALSE(has_blob('b'));
  ASSERT_EQ(repository().models.size(), 1u);
  EXPECT_TRUE(repository().models[0].stored.is_complete());
}

TEST_F(CacheRemoval, FreesSharedBlobsWithTheLastSnapshot) {
  two_snapshots();
  carry_out(plan("o/n@1111111"));
  carry_out(plan("o/n@main"));
  EXPECT_FALSE(fs::exists(cache_.layout("o/n").folder()));
}

TEST_F(CacheRemoval, RemovesTheWholeRepositoryWithoutARevision) {
  two_snapshots();
  cache_.file("o/other", '1', "config.json", 'b', "not touched");
  const RemovalPlan removal = plan("o/n");
  EXPECT_EQ(removal.bytes, 5008u);
  EXPECT_EQ(removal.models.size(), 2u);
  carry_out(removal);
  EXPECT_FALSE(fs::exists(cache_.layout("o/n").folder()));
  EXPECT_TRUE(fs::exists(cache_.layout("o/other").blob(CacheScene::etag('b'))));
}

TEST_F(CacheRemoval, RemovesOneQuantizationOnly) {
  cache_.file("o/n", '1', "n-Q4_K_M.gguf", 'a', "four");
  cache_.file("o/n", '1', "n-Q8_0-00001-of-00002.gguf", 'b', "eight");
  cache_.file("o/n", '1', "n-Q8_0-00002-of-00002.gguf", 'c', "more");
  carry_out(plan("o/n:q8_0"));
  EXPECT_TRUE(has_blob('a'));
  EXPECT_FALSE(has_blob('b') || has_blob('c'));
  ASSERT_EQ(repository().models.size(), 1u);
  EXPECT_EQ(repository().models[0].name.text(), "o/n:Q4_K_M");
  carry_out(plan("o/n:Q4_K_M"));
  EXPECT_FALSE(fs::exists(cache_.layout("o/n").folder()));
}

TEST_F(CacheRemoval, RemovesPartialFiles) {
  const auto layout = cache_.layout("o/n");
  cache_.tree(
      "o/n", '1',
      {{"n-Q8_0.gguf", 10, "", CacheScene::etag('a')}, {"n-Q4_0.gguf", 10, "", CacheScene::etag('b')}});
  cache_.write(layout.blobs() / (CacheScene::etag('a') + ".x.inferno.incomplete"), "12345");
  cache_.file("o/n", '1', "n-Q4_0.gguf", 'b', "0123456789");
  const RemovalPlan removal = plan("o/n:Q8_0");
  EXPECT_EQ(removal.bytes, 5u);
  carry_out(removal);
  ASSERT_EQ(repository().models.size(), 1u);
  EXPECT_EQ(repository().models[0].name.text(), "o/n:Q4_0");
}

TEST_F(CacheRemoval, NeverFollowsALinkOutOfTheCache) {
  cache_.file("o/n", '1', "n-Q8_0.gguf", 'a', "1");
  cache_.write(cache_.root() / "precious/file", "keep me");
  fs::create_directory_symlink(cache_.root() / "precious",
                               cache_.layout("o/n").snapshot(CacheScene::commit('1')) / "x");
  carry_out(plan("o/n"));
  EXPECT_TRUE(fs::exists(cache_.root() / "precious/file"));
}

TEST_F(CacheRemoval, RefusesWhileADownloadRuns) {
  cache_.file("o/n", '1', "n-Q8_0.gguf", 'a', "1");
  const fs::path file = cache_.layout("o/n").lock(CacheScene::etag('a'));
  fs::create_directories(file.parent_path());
  const auto lock = FileLock::try_take(file);
  EXPECT_THROW(carry_out(plan("o/n")), Error);
  EXPECT_TRUE(has_blob('a'));
}

TEST_F(CacheRemoval, ListsTheModelsIfTheRevisionIsMissing) {
  two_snapshots();
  try {
    plan("o/n@v9");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(error.advice().why, "available: o/n, o/n@111111111111");
  }
}

}  // namespace
}  // namespace inferno::hub
