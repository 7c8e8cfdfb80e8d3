#include "hub/cache/verification.h"

#include <gtest/gtest.h>

#include "hub/cache/scene.h"

namespace inferno::hub {
namespace {

// sha256("abc") and git's hash of a file with the content "abc".
const std::string sha256_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const std::string git_abc = "f2ba8f84ab5c1bce84a7b441cb1959cfc7093b7f";

std::map<std::string, FileVerdict> verdicts(const CacheScene& cache) {
  const auto repository = scan_repository(cache.root(), "models--o--n");
  const auto files =
      verify_model(repository->layout, repository->models.at(0), [](std::uint64_t) { return true; });
  std::map<std::string, FileVerdict> all;
  for (const VerifiedFile& file : *files) all[file.path] = file.verdict;
  return all;
}

class CacheVerification : public testing::Test {
 protected:
  void add(const std::string& path, const std::string& etag, std::string_view text) const {
    const auto layout = cache_.layout("o/n");
    cache_.write(layout.blob(etag), text);
    const auto link = layout.snapshot_file(CacheScene::commit('1'), path);
    std::filesystem::create_directories(link.parent_path());
    std::filesystem::create_symlink(RepositoryLayout::link_target(path, etag), link);
  }
  CacheScene cache_;
};

TEST_F(CacheVerification, AcceptsValidFiles) {
  add("config.json", git_abc, "abc");
  add("model.safetensors", sha256_abc, "abc");
  EXPECT_EQ(verdicts(cache_)["config.json"], FileVerdict::valid);
  EXPECT_EQ(verdicts(cache_)["model.safetensors"], FileVerdict::valid);
}

TEST_F(CacheVerification, FindsTheCorruptFile) {
  add("config.json", git_abc, "abc");
  add("model.safetensors", sha256_abc, "abd");
  EXPECT_EQ(verdicts(cache_)["config.json"], FileVerdict::valid);
  EXPECT_EQ(verdicts(cache_)["model.safetensors"], FileVerdict::corrupt);
}

TEST_F(CacheVerification, ComparesPlainFilesWithTheTreeIfThereIsOne) {
  const auto layout = cache_.layout("o/n");
  cache_.write(layout.snapshot_file(CacheScene::commit('1'), "config.json"), "abc");
  cache_.write(layout.snapshot_file(CacheScene::commit('1'), "model.safetensors"), "abc");
  EXPECT_EQ(verdicts(cache_)["config.json"], FileVerdict::unverified);
  cache_.tree("o/n", '1',
              {{"config.json", 3, git_abc, ""},
               {"model.safetensors", 3, "", sha256_abc},
               {"tokenizer.json", 3, git_abc, ""}});
  EXPECT_EQ(verdicts(cache_)["config.json"], FileVerdict::valid);
  EXPECT_EQ(verdicts(cache_)["tokenizer.json"], FileVerdict::missing);
}

TEST_F(CacheVerification, RemovesACorruptBlobAndNothingOutsideTheCache) {
  add("config.json", git_abc, "abc");
  add("model.safetensors", sha256_abc, "abd");
  const auto layout = cache_.layout("o/n");
  cache_.write(cache_.root() / "precious/generation_config.json", "not of the cache");
  const auto link = layout.snapshot_file(CacheScene::commit('1'), "generation_config.json");
  std::filesystem::create_symlink(cache_.root() / "precious/generation_config.json", link);
  cache_.tree("o/n", '1',
              {{"config.json", 3, git_abc, ""},
               {"model.safetensors", 3, "", sha256_abc},
               {"generation_config.json", 16, git_abc, ""}});
  const auto repository = scan_repository(cache_.root(), "models--o--n");
  const CachedModel& model = repository->models.at(0);
  const auto files = verify_model(layout, model, [](std::uint64_t) { return true; });
  for (const VerifiedFile& file : *files) {
    if (file.verdict != FileVerdict::corrupt) continue;
    EXPECT_FALSE(discard(layout, model, file)) << file.path;
  }
  EXPECT_FALSE(std::filesystem::exists(layout.blob(sha256_abc)));
  EXPECT_TRUE(std::filesystem::exists(layout.blob(git_abc)));
  EXPECT_FALSE(std::filesystem::exists(std::filesystem::symlink_status(link)));
  EXPECT_TRUE(std::filesystem::exists(cache_.root() / "precious/generation_config.json"));
}

TEST_F(CacheVerification, StopsWhenAsked) {
  add("config.json", git_abc, "abc");
  add("model.safetensors", sha256_abc, "abc");
  const auto repository = scan_repository(cache_.root(), "models--o--n");
  EXPECT_FALSE(
      verify_model(repository->layout, repository->models.at(0), [](std::uint64_t) { return false; }));
}

}  // namespace
}  // namespace inferno::hub
