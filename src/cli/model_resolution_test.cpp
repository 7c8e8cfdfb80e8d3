#include "cli/model_resolution.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "base/error.h"

namespace inferno {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

FoundModel folder_model(const std::string& name) {
  return {.name = name, .path = "/m/" + name, .bytes = 5};
}

FoundModel cached_model(const std::string& name, const std::string& path, hub::ModelFormat format) {
  hub::CachedModel cached = {
      .name = hub::parse_hub_name(name), .commit = std::string(40, 'c'), .revisions = {}, .stored = {}};
  if (!cached.name.revision.empty()) cached.revisions = {cached.name.revision};
  cached.stored.format = format;
  cached.stored.quant = cached.name.quant;
  cached.stored.stem = "x-" + cached.name.quant;
  return {.name = name, .path = path, .bytes = 5, .place = "hub cache", .format = format, .cached = cached};
}

const std::vector<FoundModel> found = {
    folder_model("Org/Name"),
    folder_model("q:x-Q4"),
    folder_model("q:x-Q8"),
    folder_model("a/same"),
    folder_model("b/same"),
    cached_model("openai/gpt-oss-20b", "/hub/oss", hub::ModelFormat::safetensors),
    cached_model("bart/tiny-GGUF:Q8_0", "/hub/q8", hub::ModelFormat::gguf),
    cached_model("bart/tiny-GGUF:Q4_K_M", "/hub/q4", hub::ModelFormat::gguf),
    cached_model("bart/tiny-GGUF@v1:Q4_K_M", "/hub/v1", hub::ModelFormat::gguf),
};

std::string path_of(const std::string& name) {
  const FoundModel* model = find_model(name, found);
  return model == nullptr ? "none" : model->path.string();
}

TEST(ModelResolution, KnowsAModelByManyNames) {
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

TEST(ModelResolution, ChoosesQuantizationsAndRevisions) {
  EXPECT_EQ(path_of("bart/tiny-GGUF"), "/hub/q4");
  EXPECT_EQ(path_of("tiny-gguf:q8_0"), "/hub/q8");
  EXPECT_EQ(path_of("hf.co/bart/tiny-GGUF:q8_0"), "/hub/q8");
  EXPECT_EQ(path_of("bart/tiny-GGUF@v1"), "/hub/v1");
  EXPECT_EQ(path_of("bart/tiny-GGUF@v2"), "none");
  EXPECT_EQ(path_of("bart/tiny-GGUF:Q2_K"), "none");
}

TEST(ModelResolution, RefusesANameThatTwoModelsAnswerTo) {
  try {
    find_model("same", found);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
    EXPECT_EQ(error.advice().why, "they are: a/same, b/same");
  }
}

TEST(ModelResolution, NamesWhatThereIsAndHowToGetTheRest) {
  const std::vector<FoundModel> one = {folder_model("one")};
  try {
    require_model("two", one);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(error.advice().why, "found are: one");
    EXPECT_THAT(error.advice().next, HasSubstr("inferno search"));
  }
  try {
    require_model("https://huggingface.co/org/two/tree/dev", one);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.advice().next, "inferno download org/two@dev");
  }
}

TEST(ModelResolution, NeverTakesAPartForTheWhole) {
  std::vector<FoundModel> some = {cached_model("o/n", "/hub/n", hub::ModelFormat::safetensors)};
  some[0].missing = {"model.safetensors", "a", "b", "c"};
  some[0].bytes = 3'000'000'000;
  some[0].whole_bytes = 14'000'000'000;
  try {
    require_model("o/n", some);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::not_found);
    EXPECT_EQ(
        error.advice().why,
        "3.0 GB of 14.0 GB are here; missing or not verified: model.safetensors, a, b and 1 more files");
    EXPECT_EQ(error.advice().next, "inferno download o/n");
  }
}

TEST(ModelResolution, TakesPathsAsTheyAre) {
  const Environment nowhere({}, std::nullopt);
  EXPECT_EQ(resolve_model("/", nowhere).path, "/");
  EXPECT_THROW(resolve_model("/no/such/place", nowhere), Error);
}

TEST(ModelResolution, CallsSnapshotsByTheirModel) {
  EXPECT_EQ(model_title("/c/models--org--name/snapshots/abc/"), "org/name");
  EXPECT_EQ(model_title("/models/some.gguf"), "some.gguf");
  EXPECT_EQ(model_title("models/tiny/"), "tiny");
}

TEST(ModelResolution, UnderstandsAnAnswerToTheList) {
  const std::vector<FoundModel> two = {folder_model("one"), folder_model("two")};
  EXPECT_EQ(chosen_model("2", two), &two[1]);
  EXPECT_EQ(chosen_model(" one ", two), &two[0]);
  for (const char* answer : {"0", "3", "-1", "", "three", "1x"})
    EXPECT_EQ(chosen_model(answer, two), nullptr);
}

}  // namespace
}  // namespace inferno
