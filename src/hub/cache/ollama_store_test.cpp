#include "hub/cache/ollama_store.h"

#include <gtest/gtest.h>

#include "hub/cache/scene.h"

namespace inferno::hub {
namespace {

std::string manifest(const std::string& digest, int size) {
  return R"({"schemaVersion":2,"layers":[{"mediaType":"application/vnd.ollama.image.license","digest":"sha256:x"},)"
         R"({"mediaType":"application/vnd.ollama.image.model","digest":")" +
         digest + R"(","size":)" + std::to_string(size) + "}]}";
}

TEST(OllamaStore, FindsModelsByTheNamesOllamaShows) {
  const CacheScene store;
  const std::string hash = CacheScene::etag('a');
  store.write(store.root() / "blobs" / ("sha256-" + hash), "12345");
  const auto manifests = store.root() / "manifests";
  store.write(manifests / "registry.ollama.ai/library/llama3.2/1b", manifest("sha256:" + hash, 5));
  store.write(manifests / "registry.ollama.ai/someone/tiny/latest", manifest("sha256:" + hash, 6));
  store.write(manifests / "hf.co/org/name/Q4_K_M", manifest("sha256:" + CacheScene::etag('b'), 5));
  const auto models = scan_ollama(store.root());
  ASSERT_EQ(models.size(), 3u);
  EXPECT_EQ(models[0].name, "hf.co/org/name:Q4_K_M");
  EXPECT_FALSE(models[0].is_complete);
  EXPECT_EQ(models[1].name, "llama3.2:1b");
  EXPECT_TRUE(models[1].is_complete);
  EXPECT_EQ(models[1].path, store.root() / "blobs" / ("sha256-" + hash));
  EXPECT_EQ(models[2].name, "someone/tiny:latest");
  EXPECT_FALSE(models[2].is_complete);
}

TEST(OllamaStore, RefusesDigestsThatArePaths) {
  const CacheScene store;
  const auto folder = store.root() / "manifests/registry.ollama.ai/library/evil";
  store.write(folder / "a", manifest("sha256:../../../../etc/passwd", 5));
  store.write(folder / "b", manifest("sha256-" + CacheScene::etag('a'), 5));
  store.write(folder / "c", "{");
  store.write(folder / "d", "[1,2]");
  store.write(folder / "e", R"({"layers":[1,{"mediaType":7}]})");
  EXPECT_TRUE(scan_ollama(store.root()).empty());
  EXPECT_TRUE(scan_ollama(store.root() / "nothing").empty());
}

}  // namespace
}  // namespace inferno::hub
