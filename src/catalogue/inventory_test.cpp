#include "catalogue/inventory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

// The models of other places than the program itself.
std::vector<FoundModel> stored_models(const ModelPlaces& places) {
  std::vector<FoundModel> found = take_inventory(places).models;
  EXPECT_TRUE(found.back().is_builtin());
  found.pop_back();
  return found;
}

class ModelInventory : public testing::Test {
 protected:
  void write(const fs::path& file, std::string_view text = "12345") {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void model(const fs::path& folder) {
    write(folder / "config.json");
    write(folder / "model.safetensors");
  }
  std::vector<FoundModel> found() const {
    return stored_models({.folders = {root_ / "folder"}, .hub_caches = {root_ / "hub"}});
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const FoundModel& one : found()) all.push_back(one.name);
    return all;
  }

  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(ModelInventory, FindsDirectoriesAndFilesInAFolder) {
  model("folder/tiny");
  model("folder/org/name");
  write("folder/alone.gguf");
  write("folder/no-weights/config.json");
  write("folder/too/deep/for/config.json");
  EXPECT_THAT(names(), ElementsAre("alone", "org/name", "tiny"));
  EXPECT_EQ(found()[2].path(), root_ / "folder/tiny");
  EXPECT_EQ(found()[2].bytes, 10u);
}

TEST_F(ModelInventory, TakesAFolderThatIsAModelItself) {
  model("folder");
  EXPECT_THAT(names(), ElementsAre("folder"));
}

TEST_F(ModelInventory, FollowsTheMainReferenceOfTheHubCache) {
  model("hub/models--org--name/snapshots/aaa");
  model("hub/models--org--name/snapshots/bbb");
  write("hub/models--org--name/refs/main", "aaa");
  model("hub/models--gpt2/snapshots/ccc");
  write("hub/datasets--x--y/snapshots/ddd/config.json");
  EXPECT_THAT(names(), ElementsAre("hf.co/gpt2", "org/name", "org/name@bbb"));  // gpt2 is an alias
  EXPECT_EQ(found()[1].path(), root_ / "hub/models--org--name/snapshots/aaa");
}

TEST_F(ModelInventory, TakesTheNewestSnapshotWithoutAReference) {
  model("hub/models--a--b/snapshots/old");
  model("hub/models--a--b/snapshots/new");
  fs::last_write_time(root_ / "hub/models--a--b/snapshots/old",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(found().front().path().filename(), "new");
  write("hub/models--a--b/refs/main", "../../../etc");
  EXPECT_EQ(found().front().path().filename(), "new");
}

TEST_F(ModelInventory, ListsEveryGgufButCountsASplitOneOnce) {
  const fs::path snapshot = "hub/models--o--n/snapshots/c";
  write(snapshot / "n-Q4_K_M.gguf");
  write(snapshot / "n-Q8_0-00001-of-00002.gguf");
  write(snapshot / "n-Q8_0-00002-of-00002.gguf");
  write(snapshot / "mmproj-n.gguf");
  EXPECT_THAT(names(), ElementsAre("o/n:Q4_K_M", "o/n:Q8_0"));
  EXPECT_EQ(found()[1].path().filename(), "n-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(found()[1].bytes, 10u);
}

TEST_F(ModelInventory, TellsPartialModelsFromWholeOnes) {
  const std::string commit(40, 'c');
  write("hub/models--o--n/snapshots/" + commit + "/config.json");
  write("hub/models--o--n/snapshots/" + commit + "/model-00001-of-00002.safetensors");
  write("folder/split/x-00001-of-00002.gguf");
  ASSERT_THAT(names(), ElementsAre("split", "o/n"));
  EXPECT_THAT(found()[0].missing, ElementsAre("x-00002-of-00002.gguf"));
  EXPECT_FALSE(found()[1].is_complete());
  EXPECT_EQ(found()[1].place, "hub cache");
}

TEST_F(ModelInventory, ReadsTheStoresOfOtherPrograms) {
  const std::string hash(64, 'a');
  write("ollama/blobs/sha256-" + hash);
  write("ollama/manifests/registry.ollama.ai/library/tiny/latest",
        R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + hash +
            R"(","size":5}]})");
  write("lm/someone/some-GGUF/some-Q4_K_M.gguf");
  const auto all = stored_models({.lm_studio = {root_ / "lm"}, .ollama = {root_ / "ollama"}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].name + " " + all[0].place, "someone/some-GGUF LM Studio");
  EXPECT_EQ(all[1].name + " " + all[1].place, "tiny:latest Ollama");
  EXPECT_TRUE(all[1].is_complete());
}

TEST_F(ModelInventory, KeepsTheRepositoriesOfAllCaches) {
  model("hub/models--org--name/snapshots/aaa");
  write("hub/models--org--scraps/blobs/x");
  const Inventory inventory = take_inventory({.hub_caches = {root_ / "hub"}});
  ASSERT_EQ(inventory.repositories.size(), 2u);
  EXPECT_EQ(inventory.repositories[1].name.id(), "org/scraps");
  EXPECT_THAT(inventory.models[1].missing, ElementsAre("its weights"));
}

TEST_F(ModelInventory, EndsWithTheBuiltInModel) {
  const std::vector<FoundModel> models = take_inventory({}).models;
  ASSERT_EQ(models.size(), 1u);
  EXPECT_EQ(models[0].name, "builtin");
  EXPECT_TRUE(models[0].is_builtin());
  EXPECT_GT(models[0].bytes, 0u);
}

TEST_F(ModelInventory, FindsNothingWhereNothingIs) {
  EXPECT_TRUE(found().empty());
}

}  // namespace
}  // namespace inferno
