#include "catalogue/catalogue.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

FoundModel folder_model(const std::string& name) {
  return {.name = name, .location = "/m/" + name, .bytes = 5};
}

FoundModel hub_model(const std::string& name, const std::string& path, hub::ModelFormat format) {
  hub::CachedModel cached = {
      .name = hub::parse_hub_name(name), .commit = std::string(40, 'c'), .revisions = {}, .stored = {}};
  if (!cached.name.revision.empty()) cached.revisions = {cached.name.revision};
  cached.stored.format = format;
  cached.stored.quant = cached.name.quant;
  cached.stored.stem = "x-" + cached.name.quant;
  return {
      .name = name, .location = path, .bytes = 5, .place = "hub cache", .format = format, .cached = cached};
}

const std::vector<FoundModel> found = {
    folder_model("Org/Name"),
    folder_model("q:x-Q4"),
    folder_model("q:x-Q8"),
    folder_model("a/same"),
    folder_model("b/same"),
    hub_model("openai/gpt-oss-20b", "/hub/oss", hub::ModelFormat::safetensors),
    hub_model("bart/tiny-GGUF:Q8_0", "/hub/q8", hub::ModelFormat::gguf),
    hub_model("bart/tiny-GGUF:Q4_K_M", "/hub/q4", hub::ModelFormat::gguf),
    hub_model("bart/tiny-GGUF@v1:Q4_K_M", "/hub/v1", hub::ModelFormat::gguf),
};

std::string path_of(const std::string& name) {
  const FoundModel* model = find_model(name, found);
  return model == nullptr ? "none" : model->path().string();
}

TEST(Catalogue, KnowsAModelByManyNames) {
  EXPECT_EQ(path_of("Org/Name"), "/m/Org/Name");
  EXPECT_EQ(path_of("name"), "/m/Org/Name");
  EXPECT_EQ(path_of("q:q8"), "/m/q:x-Q8");
  for (const char* name :
       {"openai/gpt-oss-20b", "gpt-oss:20b", "gpt-oss", "OpenAI/GPT-OSS-20B", "gpt-oss-20b",
        "hf.co/openai/gpt-oss-20b", "hf://openai/gpt-oss-20b@main",
        "https://huggingface.co/openai/gpt-oss-20b/tree/main", "openai/gpt-oss-20b@ccccccc"}) {
    EXPECT_EQ(path_of(name), "/hub/oss") << name;
  }
}

TEST(Catalogue, ChoosesQuantizationsAndRevisions) {
  EXPECT_EQ(path_of("bart/tiny-GGUF"), "/hub/q4");
  EXPECT_EQ(path_of("tiny-gguf:q8_0"), "/hub/q8");
  EXPECT_EQ(path_of("hf.co/bart/tiny-GGUF:q8_0"), "/hub/q8");
  EXPECT_EQ(path_of("bart/tiny-GGUF@v1"), "/hub/v1");
  EXPECT_EQ(path_of("bart/tiny-GGUF@v2"), "none");
  EXPECT_EQ(path_of("bart/tiny-GGUF:Q2_K"), "none");
}

TEST(Catalogue, RefusesANameThatTwoModelsAnswerTo) {
  try {
    find_model("same", found);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    EXPECT_EQ(error.advice().why, "matching models: a/same, b/same");
  }
}

template <class Action>
Error error_of(const Action& action) {
  try {
    action();
  } catch (const Error& error) {
    return error;
  }
  ADD_FAILURE() << "no error";
  return {ErrorKind::internal, ""};
}

TEST(Catalogue, NamesWhatIsHereAndHowToGetTheRest) {
  const Catalogue catalogue({.hub_endpoint = [] { return "https://mirror.example"; }});
  const Error unknown = error_of([&] { catalogue.resolve("two"); });
  EXPECT_EQ(unknown.kind(), ErrorKind::not_found);
  EXPECT_EQ(unknown.advice().why, "models here: builtin");
  EXPECT_THAT(unknown.advice().next, HasSubstr("inferno search"));
  for (const std::string hub : {"https://huggingface.co", "https://mirror.example"}) {
    const Error on_hub = error_of([&] { catalogue.resolve(hub + "/org/two/tree/dev"); });
    EXPECT_EQ(on_hub.advice().next, "inferno download org/two@dev");
  }
}

TEST(Catalogue, ShowsTheSizesOfWhatWouldBeFetchedHere) {
  const auto next = [](std::uint64_t memory) {
    const Catalogue catalogue({.memory = [=] { return memory; }});
    return error_of([&] { catalogue.resolve("qwen3:9b"); }).advice().next;
  };
  EXPECT_THAT(next(1'000'000'000'000), HasSubstr("qwen3:8b (16.4 GB)"));
  EXPECT_THAT(next(8'000'000'000), HasSubstr("qwen3:8b (5.0 GB)"));
}

TEST(Catalogue, AsksNoHubAboutAShortNameThatMeansNothing) {
  const Catalogue catalogue({.memory = [] { return std::uint64_t{8'000'000'000}; }});
  EXPECT_EQ(catalogue.to_download("llama3.2").text(), "bartowski/Llama-3.2-3B-Instruct-GGUF:Q4_K_M");
  EXPECT_EQ(catalogue.to_download("org/name:Q8_0").text(), "org/name:Q8_0");
  EXPECT_EQ(catalogue.to_download("hf.co/gpt2").id(), "gpt2");
  const auto next = [&](const std::string& name) {
    return error_of([&] { catalogue.to_download(name); }).advice().next;
  };
  EXPECT_THAT(next("llama"), HasSubstr("choose one of these: llama3.1:8b (4.9 GB)"));
  EXPECT_THAT(next("mistrall"), HasSubstr("did you mean mistral?"));
  EXPECT_THAT(next("phi-4"), HasSubstr("did you mean phi4?"));
  // Another number is another model.
  for (const char* name : {"llama5", "qwen4", "phi7", "mistral2:7b"})
    EXPECT_THAT(next(name), testing::Not(HasSubstr("did you mean"))) << name;
  for (const char* name : {"gemma3", "gemma3:27b", "deepseek-v3", "Qwen3.5", "llama4"}) {
    const Error error = error_of([&] { catalogue.to_download(name); });
    EXPECT_THAT(error.advice().why, HasSubstr("cannot run models of the family ")) << name;
    EXPECT_EQ(error.advice().next, "inferno search NAME --fits lists models that run here") << name;
  }
  EXPECT_EQ(next("builtin"), "inferno play builtin");
  EXPECT_EQ(error_of([&] { catalogue.to_download("/tmp"); }).kind(), ErrorKind::invalid_request);
}

TEST(Catalogue, NamesTheNearestOfManyModels) {
  std::vector<FoundModel> many;
  for (int number = 0; number < 12; ++number) many.push_back(folder_model(fmt::format("a{}/same", number)));
  const Error error = error_of([&] { find_model("same", many); });
  EXPECT_EQ(error.advice().why,
            "matching models: a0/same, a1/same, a2/same, a3/same, a4/same and 7 more (inferno list)");
}

TEST(Catalogue, OmitsTagsAsOllamaDoes) {
  EXPECT_TRUE(answers_to(folder_model("me/mine:latest"), "mine"));
  EXPECT_TRUE(answers_to(folder_model("me/mine:latest"), "me/mine"));
  EXPECT_TRUE(answers_to(folder_model("llama3.2:latest"), "llama3.2"));
  EXPECT_FALSE(answers_to(folder_model("me/mine:1b"), "mine"));
}

TEST(Catalogue, NeverTakesAPartForTheWhole) {
  std::vector<FoundModel> some = {hub_model("o/n", "/hub/n", hub::ModelFormat::safetensors)};
  some[0].missing = {"model.safetensors", "a", "b", "c"};
  some[0].bytes = 3'000'000'000;
  some[0].whole_bytes = 14'000'000'000;
  const Error error = error_of([&] { require_complete(some[0], /*is_offline=*/false); });
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
  EXPECT_EQ(error.advice().why,
            "3.0 GB of 14.0 GB are here; missing or not verified: model.safetensors, a, b and 1 more file");
  EXPECT_EQ(error.advice().next, "inferno download o/n");
  const Error offline = error_of([&] { require_complete(some[0], /*is_offline=*/true); });
  EXPECT_THAT(offline.advice().next, HasSubstr("unset HF_HUB_OFFLINE"));
}

// Changes the working directory of the process for the time of a test.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const fs::path& folder) { fs::current_path(folder); }
  ~WorkingDirectory() { fs::current_path(before_); }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

 private:
  const fs::path before_ = fs::current_path();
};

class CatalogueOfFolders : public testing::Test {
 protected:
  void write(const fs::path& file, std::string_view text = "12345") {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  CatalogueSettings settings() const {
    return {.places = {.folders = {root_ / "folder"}, .hub_caches = {root_ / "hub"}},
            .unpack_folders = {root_ / "unpacked"}};
  }

  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path();
};

TEST_F(CatalogueOfFolders, ResolvesANameToThePathOfACompleteModel) {
  write("folder/tiny/config.json");
  write("folder/tiny/model.safetensors");
  const Catalogue catalogue(settings());
  EXPECT_EQ(catalogue.resolve("TINY").name, "tiny");
  EXPECT_EQ(catalogue.resolve("tiny").path, root_ / "folder/tiny");
  EXPECT_TRUE(catalogue.look_up("tiny").is_complete());
}

TEST_F(CatalogueOfFolders, TakesAModelOfTheSameMeaning) {
  write("folder/qwen3:8b/config.json");
  write("folder/qwen3:8b/model.safetensors");
  EXPECT_EQ(Catalogue(settings()).resolve("qwen3").name, "qwen3:8b");
  EXPECT_THROW(Catalogue(settings()).resolve("qwen3:4b"), Error);
}

TEST_F(CatalogueOfFolders, UnpacksTheBuiltInModelWhenItIsResolved) {
  const Catalogue catalogue(settings());
  EXPECT_TRUE(catalogue.look_up("builtin").is_complete());
  EXPECT_FALSE(fs::exists(root_ / "unpacked"));
  const ResolvedModel builtin = catalogue.resolve("builtin");
  EXPECT_EQ(builtin.name, "builtin");
  EXPECT_TRUE(fs::exists(builtin.path / "config.json"));
  EXPECT_EQ(catalogue.resolve(catalogue.inventory().models.back()).path, builtin.path);
}

TEST_F(CatalogueOfFolders, ScansOnceAndOnlyForNames) {
  Catalogue catalogue(settings());
  EXPECT_THROW(catalogue.resolve("tiny"), Error);
  write("folder/tiny/config.json");
  write("folder/tiny/model.safetensors");
  EXPECT_THROW(catalogue.resolve("tiny"), Error) << "scanned twice";
  EXPECT_EQ(catalogue.resolve((root_ / "folder/tiny").string()).path, root_ / "folder/tiny");
  catalogue.refresh();
  EXPECT_NO_THROW(catalogue.resolve("tiny"));

  const Catalogue fresh(settings());
  fresh.resolve((root_ / "folder/tiny").string());
  fresh.resolve("builtin");
  write("folder/other/config.json");
  write("folder/other/model.safetensors");
  EXPECT_NO_THROW(fresh.resolve("other")) << "a path or the built-in model caused a scan";
}

TEST_F(CatalogueOfFolders, SaysWhatADownloadWouldComplete) {
  write("hub/models--org--name/snapshots/" + std::string(40, 'c') + "/config.json");
  write("hub/models--org--name/snapshots/" + std::string(40, 'c') + "/model-00001-of-00002.safetensors");
  const Catalogue catalogue(settings());
  const ModelMatch partial = catalogue.look_up("name");
  ASSERT_NE(partial.here, nullptr);
  EXPECT_FALSE(partial.is_complete());
  EXPECT_EQ(partial.download->id(), "org/name");
  EXPECT_EQ(catalogue.look_up("org/absent").download->id(), "org/absent");
  EXPECT_FALSE(catalogue.look_up("absent").download);
}

TEST_F(CatalogueOfFolders, FindsTheRepositoryOfACachedModel) {
  write("hub/models--org--name/snapshots/" + std::string(40, 'c') + "/config.json");
  write("hub/models--org--name/snapshots/" + std::string(40, 'c') + "/model.safetensors");
  write("folder/tiny/config.json");
  write("folder/tiny/model.safetensors");
  const Catalogue catalogue(settings());
  const CachedMatch match = catalogue.cached("name");
  EXPECT_EQ(match.repository.name.id(), "org/name");
  EXPECT_EQ(match.wanted.id(), "org/name");
  const auto problem_with = [&](const std::string& name) {
    return error_of([&] { catalogue.cached(name); }).kind();
  };
  EXPECT_EQ(problem_with("tiny"), ErrorKind::invalid_request);
  EXPECT_EQ(problem_with("builtin"), ErrorKind::invalid_request);
  EXPECT_EQ(problem_with("./name"), ErrorKind::invalid_request);
  EXPECT_EQ(problem_with((root_ / "folder/tiny").string()), ErrorKind::invalid_request);
  EXPECT_EQ(problem_with("org/absent"), ErrorKind::not_found);
}

TEST_F(CatalogueOfFolders, FindsTheRepositoryAlsoIfAFolderHasItsName) {
  const std::string snapshot = "hub/models--org--name/snapshots/" + std::string(40, 'c');
  write(snapshot + "/config.json");
  write(snapshot + "/model.safetensors");
  for (const char* folder : {"working/org/name", "working/name", "folder/org/name"}) {
    write(fs::path(folder) / "config.json");
    write(fs::path(folder) / "model.safetensors");
  }
  const Catalogue catalogue(settings());
  const Catalogue without_folders({.places = {.hub_caches = {root_ / "hub"}}});
  const WorkingDirectory inside(root_ / "working");
  EXPECT_TRUE(catalogue.look_up("org/name").path);
  for (const char* name : {"org/name", "Org/Name", "org/name@main", "hf.co/org/name"}) {
    EXPECT_EQ(catalogue.cached(name).repository.name.id(), "org/name") << name;
  }
  EXPECT_EQ(without_folders.cached("name").wanted.id(), "org/name");
  EXPECT_EQ(error_of([&] { catalogue.cached("./org/name"); }).kind(), ErrorKind::invalid_request);
}

TEST_F(CatalogueOfFolders, FindsARepositoryWhoseDownloadHasOnlyBegun) {
  fs::create_directories(root_ / "hub/models--org--begun/blobs");
  const Catalogue catalogue(settings());
  EXPECT_EQ(catalogue.look_up("org/begun").here, nullptr);
  EXPECT_EQ(catalogue.cached("Org/Begun").repository.name.id(), "org/begun");
}

TEST_F(CatalogueOfFolders, KeepsTheRevisionAndQuantizationThatWereAskedFor) {
  write("hub/models--org--name/snapshots/" + std::string(40, 'c') + "/name-Q4_K_M.gguf");
  const Catalogue catalogue(settings());
  EXPECT_EQ(catalogue.cached("name").wanted.quant, "");
  EXPECT_EQ(catalogue.cached("name:Q4_K_M").wanted.quant, "Q4_K_M");
}

TEST_F(CatalogueOfFolders, NamesPathsAsTheyWereGivenAndSnapshotsByTheirModel) {
  EXPECT_EQ(Catalogue({}).resolve("/").path, "/");
  EXPECT_EQ(Catalogue({}).resolve("/").name, "/");
  EXPECT_THROW(Catalogue({}).resolve("/no/such/place"), Error);
  const fs::path snapshot = root_ / "hub/models--org--name/snapshots/abc";
  write(snapshot / "config.json");
  write(snapshot / "model.safetensors");
  EXPECT_EQ(Catalogue({}).resolve((snapshot / "").string()).name, "org/name");
}

TEST(Catalogue, TakesAFileOfWeightsForItsFolder) {
  const TemporaryDirectory folder;
  std::ofstream(folder.path() / "model.safetensors") << "x";
  EXPECT_THROW(folder_of_weights(folder.path() / "model.safetensors"), Error);
  std::ofstream(folder.path() / "config.json") << "{}";
  EXPECT_EQ(folder_of_weights(folder.path() / "model.safetensors"), folder.path());
  EXPECT_EQ(folder_of_weights(folder.path()), folder.path());
  EXPECT_EQ(folder_of_weights("model.gguf"), "model.gguf");
}

}  // namespace
}  // namespace inferno
