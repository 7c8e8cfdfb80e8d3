#include "hub/cache/scan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hub/cache/scene.h"

namespace inferno::hub {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(const CacheScene& cache) {
  std::vector<std::string> all;
  for (const CachedRepository& repository : scan_cache(cache.root())) {
    for (const CachedModel& model : repository.models) all.push_back(model.name.text());
  }
  return all;
}

CachedModel only(const CacheScene& cache) {
  const auto repositories = scan_cache(cache.root());
  EXPECT_EQ(repositories.size(), 1u);
  EXPECT_EQ(repositories.at(0).models.size(), 1u);
  return repositories.at(0).models.at(0);
}

HubFile listed(std::string path, std::uint64_t size, char letter) {
  return {std::move(path), size, "", CacheScene::etag(letter)};
}

TEST(CacheScan, FindsACompleteModel) {
  const CacheScene cache;
  cache.ref("org/name", "main", 'c');
  cache.file("org/name", 'c', "config.json", 'a', "{}");
  cache.file("org/name", 'c', "model.safetensors", 'b', "12345");
  cache.tree("org/name", 'c',
             {listed("config.json", 2, 'a'), listed("model.safetensors", 5, 'b'), listed("README.md", 9, 'd'),
              listed("original/x.bin", 9, 'e')});
  const CachedModel model = only(cache);
  EXPECT_EQ(model.name.text(), "org/name");
  EXPECT_THAT(model.stored.missing, IsEmpty());
  EXPECT_EQ(model.stored.bytes, 7u);
  EXPECT_EQ(model.stored.path, cache.layout("org/name").snapshot(CacheScene::commit('c')));
  EXPECT_GT(model.stored.last_use, 1'600'000'000);
}

TEST(CacheScan, ReportsAPartialModelUntilEveryFileMatches) {
  const CacheScene cache;
  const std::vector<HubFile> tree = {listed("config.json", 2, 'a'), listed("model.safetensors", 5000, 'b'),
                                     listed("tokenizer.json", 3, 'd')};
  cache.ref("org/name", "main", 'c');
  cache.tree("org/name", 'c', tree);
  cache.file("org/name", 'c', "config.json", 'a', "{}");
  cache.partial("org/name", 'b', std::string(4000, 'x'));
  EXPECT_THAT(only(cache).stored.missing, ElementsAre("model.safetensors", "tokenizer.json"));
  EXPECT_EQ(only(cache).stored.bytes, 4002u);
  EXPECT_EQ(only(cache).stored.whole_bytes, 5005u);

  cache.file("org/name", 'c', "tokenizer.json", 'e', "abc");  // the same size, another file
  EXPECT_THAT(only(cache).stored.missing, ElementsAre("model.safetensors", "tokenizer.json"));
  cache.blob("org/name", 'b', std::string(5000, 'x'));  // present, but not linked
  EXPECT_THAT(only(cache).stored.missing, ElementsAre("model.safetensors", "tokenizer.json"));
  cache.link("org/name", 'c', "model.safetensors", 'b');
  EXPECT_THAT(only(cache).stored.missing, ElementsAre("tokenizer.json"));
  cache.blob("org/name", 'b', std::string(4999, 'x'));  // cut short
  EXPECT_THAT(only(cache).stored.missing, ElementsAre("model.safetensors", "tokenizer.json"));
}

TEST(CacheScan, FindsADownloadThatHasJustStarted) {
  const CacheScene cache;
  cache.ref("org/name", "main", 'c');
  cache.tree("org/name", 'c', {listed("config.json", 2, 'a'), listed("model.safetensors", 5000, 'b')});
  EXPECT_THAT(names(cache), IsEmpty());
  cache.partial("org/name", 'b', "x");
  EXPECT_FALSE(only(cache).stored.is_complete());
}

TEST(CacheScan, NamesADownloadThatStoppedBeforeItsFirstFileAsItWasAskedFor) {
  const CacheScene cache;
  cache.tree("org/name", 'c', {listed("config.json", 2, 'a'), listed("model.safetensors", 5000, 'b')});
  cache.partial("org/name", 'b', "x");
  EXPECT_EQ(only(cache).name.text(), "org/name");
  EXPECT_FALSE(only(cache).stored.is_complete());
}

TEST(CacheScan, UsesTheIndexIfThereIsNoTree) {
  const CacheScene cache;
  cache.file("org/name", 'c', "config.json", 'a', "{}");
  cache.file(
      "org/name", 'c', "model.safetensors.index.json", 'b',
      R"({"weight_map":{"x":"model-00001-of-00002.safetensors","y":"model-00002-of-00002.safetensors"}})");
  cache.file("org/name", 'c', "model-00001-of-00002.safetensors", 'd', "1");
  EXPECT_THAT(only(cache).stored.missing, ElementsAre("model-00002-of-00002.safetensors"));
  cache.link("org/name", 'c', "model-00002-of-00002.safetensors", 'e');  // dangling
  EXPECT_FALSE(only(cache).stored.is_complete());
  cache.blob("org/name", 'e', "2");
  EXPECT_TRUE(only(cache).stored.is_complete());
}

TEST(CacheScan, RequiresTheIndexOfShards) {
  const CacheScene cache;
  cache.file("org/name", 'c', "config.json", 'a', "{}");
  cache.file("org/name", 'c', "model-00001-of-00002.safetensors", 'd', "1");
  EXPECT_THAT(only(cache).stored.missing,
              ElementsAre("model-00002-of-00002.safetensors", "model.safetensors.index.json"));
}

TEST(CacheScan, AcceptsPlainFilesInsteadOfLinks) {
  const CacheScene cache;
  const auto layout = cache.layout("gpt2-ish");
  cache.write(layout.snapshot_file(CacheScene::commit('c'), "config.json"), "{}");
  EXPECT_THAT(names(cache), IsEmpty());
  cache.write(layout.snapshot_file(CacheScene::commit('c'), "model.safetensors"), "123");
  EXPECT_THAT(names(cache), ElementsAre("gpt2-ish"));
  EXPECT_TRUE(only(cache).stored.is_complete());
}

TEST(CacheScan, ListsEveryGgufAndFindsItsParts) {
  const CacheScene cache;
  cache.file("o/n", 'c', "n-Q4_K_M.gguf", 'a', "1");
  cache.file("o/n", 'c', "BF16/n-BF16-00001-of-00002.gguf", 'b', "22");
  cache.file("o/n", 'c', "mmproj-n.gguf", 'd', "1");
  EXPECT_THAT(names(cache), ElementsAre("o/n:BF16", "o/n:Q4_K_M"));
  const auto repository = scan_cache(cache.root()).at(0);
  EXPECT_THAT(repository.models[0].stored.missing, ElementsAre("BF16/n-BF16-00002-of-00002.gguf"));
  EXPECT_EQ(repository.models[0].stored.whole_bytes, 0u);
  EXPECT_TRUE(repository.models[1].stored.is_complete());
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n"))->name.quant, "Q4_K_M");
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n:bf16"))->name.quant, "BF16");
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n:Q8_0")), nullptr);
}

TEST(CacheScan, NamesSnapshotsByTheirRevisions) {
  const CacheScene cache;
  for (const char commit : {'a', 'b', 'c'}) {
    cache.file("o/n", commit, "n-Q8_0.gguf", commit, std::string(3, commit));
  }
  cache.ref("o/n", "main", 'b');
  cache.ref("o/n", "refs/pr/1", 'c');
  EXPECT_THAT(names(cache), ElementsAre("o/n:Q8_0", "o/n@aaaaaaaaaaaa:Q8_0", "o/n@refs/pr/1:Q8_0"));
  const auto repository = scan_cache(cache.root()).at(0);
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n@aaaaaaa"))->commit, CacheScene::commit('a'));
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n@main"))->commit, CacheScene::commit('b'));
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n@refs/pr/1"))->commit, CacheScene::commit('c'));
  EXPECT_EQ(find_cached(repository.models, parse_hub_name("o/n@none")), nullptr);
}

TEST(CacheScan, UsesTheNewestSnapshotWithoutARefAndIgnoresAnInvalidRef) {
  const CacheScene cache;
  cache.file("o/n", 'a', "n-Q8_0.gguf", 'a', "1");
  cache.file("o/n", 'b', "n-Q8_0.gguf", 'b', "2");
  fs::last_write_time(cache.layout("o/n").snapshot(CacheScene::commit('a')),
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(cached_commit(cache.layout("o/n"), "main"), CacheScene::commit('b'));
  cache.write(cache.layout("o/n").ref("main"), "../../../../etc");
  EXPECT_EQ(cached_commit(cache.layout("o/n"), "main"), CacheScene::commit('b'));
  EXPECT_EQ(cached_commit(cache.layout("o/n"), "../x"), std::nullopt);
}

TEST(CacheScan, CountsABlobOnce) {
  const CacheScene cache;
  cache.file("o/n", 'a', "n-Q8_0.gguf", 'a', std::string(5000, '1'));
  cache.link("o/n", 'b', "n-Q8_0.gguf", 'a');
  EXPECT_EQ(scan_cache(cache.root()).at(0).bytes, 5000u);
  EXPECT_EQ(names(cache).size(), 2u);
}

TEST(CacheScan, IgnoresOtherEntries) {
  const CacheScene cache;
  cache.write(cache.root() / "datasets--x--y/snapshots/c/config.json", "{}");
  cache.write(cache.root() / "CACHEDIR.TAG", "");
  cache.write(cache.root() / "models--file", "");
  EXPECT_TRUE(scan_cache(cache.root()).empty());
  EXPECT_TRUE(scan_cache(cache.root() / "nothing").empty());
  EXPECT_FALSE(scan_repository(cache.root(), "../x"));
}

}  // namespace
}  // namespace inferno::hub
