#include "cli/model_discovery.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class ModelDiscovery : public testing::Test {
 protected:
  void write(const fs::path& file, std::string_view text = "12345") {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  void model(const fs::path& folder) {
    write(folder / "config.json");
    write(folder / "model.safetensors");
  }
  std::vector<FoundModel> found() const { return find_models({{root_ / "folder"}, root_ / "hub"}); }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const FoundModel& one : found()) all.push_back(one.name);
    return all;
  }

  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(ModelDiscovery, FindsDirectoriesAndFilesInAFolder) {
  model("folder/tiny");
  model("folder/org/name");
  write("folder/alone.gguf");
  write("folder/no-weights/config.json");
  write("folder/too/deep/for/config.json");
  EXPECT_THAT(names(), ElementsAre("alone", "org/name", "tiny"));
  EXPECT_EQ(found()[2].path, root_ / "folder/tiny");
  EXPECT_EQ(found()[2].bytes, 5u);
}

TEST_F(ModelDiscovery, TakesAFolderThatIsAModelItself) {
  model("folder");
  EXPECT_THAT(names(), ElementsAre("folder"));
}

TEST_F(ModelDiscovery, FollowsTheMainReferenceOfTheHubCache) {
  model("hub/models--org--name/snapshots/aaa");
  model("hub/models--org--name/snapshots/bbb");
  write("hub/models--org--name/refs/main", "aaa");
  model("hub/models--gpt2/snapshots/ccc");
  write("hub/datasets--x--y/snapshots/ddd/config.json");
  EXPECT_THAT(names(), ElementsAre("gpt2", "org/name"));
  EXPECT_EQ(found()[1].path, root_ / "hub/models--org--name/snapshots/aaa");
}

TEST_F(ModelDiscovery, TakesTheNewestSnapshotWithoutAReference) {
  model("hub/models--a--b/snapshots/old");
  model("hub/models--a--b/snapshots/new");
  fs::last_write_time(root_ / "hub/models--a--b/snapshots/old",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  EXPECT_EQ(found().front().path.filename(), "new");
  write("hub/models--a--b/refs/main", "../../../etc");
  EXPECT_EQ(found().front().path.filename(), "new");
}

TEST_F(ModelDiscovery, ListsEveryGgufButCountsASplitOneOnce) {
  const fs::path snapshot = "hub/models--o--n/snapshots/c";
  write(snapshot / "n-Q4_K_M.gguf");
  write(snapshot / "n-Q8_0-00001-of-00002.gguf");
  write(snapshot / "n-Q8_0-00002-of-00002.gguf");
  write(snapshot / "mmproj-n.gguf");
  EXPECT_THAT(names(), ElementsAre("o/n:n-Q4_K_M", "o/n:n-Q8_0"));
  EXPECT_EQ(found()[1].path.filename(), "n-Q8_0-00001-of-00002.gguf");
  EXPECT_EQ(found()[1].bytes, 10u);
}

TEST_F(ModelDiscovery, ResolvesPathsAndNames) {
  model("folder/Org/Name");
  write("folder/q/x-Q4.gguf");
  write("folder/q/x-Q8.gguf");
  const auto all = found();
  EXPECT_EQ(resolve_model((root_ / "folder").string(), all), root_ / "folder");
  EXPECT_EQ(resolve_model("Org/Name", all), root_ / "folder/Org/Name");
  EXPECT_EQ(resolve_model("name", all), root_ / "folder/Org/Name");
  EXPECT_EQ(resolve_model("q:q8", all), root_ / "folder/q/x-Q8.gguf");
}

TEST_F(ModelDiscovery, NamesWhatThereIsWhenNothingAnswers) {
  model("folder/one");
  try {
    resolve_model("two", found());
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(error.advice().why, "found are: one");
  }
}

TEST_F(ModelDiscovery, RefusesANameThatTwoModelsAnswerTo) {
  model("folder/a/same");
  model("folder/b/same");
  EXPECT_THROW(resolve_model("same", found()), Error);
}

TEST_F(ModelDiscovery, UnderstandsAnAnswerToTheList) {
  model("folder/one");
  model("folder/two");
  const auto all = found();
  EXPECT_EQ(chosen_model("2", all), &all[1]);
  EXPECT_EQ(chosen_model(" one ", all), &all[0]);
  for (const char* answer : {"0", "3", "-1", "", "three", "1x"})
    EXPECT_EQ(chosen_model(answer, all), nullptr);
}

TEST_F(ModelDiscovery, FindsNothingWhereNothingIs) {
  EXPECT_TRUE(found().empty());
}

}  // namespace
}  // namespace inferno
