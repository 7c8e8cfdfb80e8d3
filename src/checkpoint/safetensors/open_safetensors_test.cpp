#include "checkpoint/safetensors/open_safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/caught_error.h"
#include "support/safetensors_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class Safetensors : public testing::Test {
 protected:
  Safetensors() { config(R"({"model_type": "llama"})"); }

  void config(std::string_view json) { directory.write("config.json", json); }
  void single(std::vector<SafetensorsData> tensors) {
    write_safetensors(directory.path() / "model.safetensors", tensors);
  }
  void sharded(std::vector<std::vector<SafetensorsData>> shards) {
    write_sharded_safetensors(directory.path(), shards);
  }
  void index(std::string_view json) { directory.write("model.safetensors.index.json", json); }

  std::unique_ptr<Checkpoint> open() const { return open_safetensors(directory.path()); }
  Error refusal() const {
    Error error = caught_error([&] { open(); });
    EXPECT_THAT(error.what(), HasSubstr(directory.path().string()));
    return error;
  }

  TemporaryDirectory directory;
};

std::vector<std::byte> contents(const StoredTensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes);
  tensor.read(0, bytes);
  return bytes;
}

TEST_F(Safetensors, OpensOneFile) {
  const SafetensorsData weight = patterned_tensor("w", "BF16", {3, 4});
  single({weight, patterned_tensor("a", "F32", {2})});
  const auto checkpoint = open();
  EXPECT_EQ(checkpoint->container(), Container::safetensors);
  EXPECT_EQ(checkpoint->architecture(), "llama");
  EXPECT_THAT(checkpoint->names(), ElementsAre("a", "w"));
  const auto found = checkpoint->find("w");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->format, WeightFormat::bf16);
  EXPECT_THAT(found->shape, ElementsAre(3, 4));
  EXPECT_EQ(contents(*found), weight.bytes);
  EXPECT_FALSE(checkpoint->find("x"));
}

TEST_F(Safetensors, OpensShards) {
  const SafetensorsData first = patterned_tensor("a", "F32", {2}), second = patterned_tensor("b", "F16", {5});
  sharded({{first}, {second, patterned_tensor("c", "I8", {1})}});
  const auto checkpoint = open();
  EXPECT_THAT(checkpoint->names(), ElementsAre("a", "b", "c"));
  EXPECT_EQ(contents(*checkpoint->find("a")), first.bytes);
  EXPECT_EQ(contents(*checkpoint->find("b")), second.bytes);
}

TEST_F(Safetensors, IgnoresFilesThatAreNotPartOfTheModel) {
  single({patterned_tensor("w", "F32", {1})});
  write_safetensors(directory.path() / "golden.safetensors",
                    std::vector{patterned_tensor("other", "F32", {1})});
  EXPECT_THAT(open()->names(), ElementsAre("w"));
}

TEST_F(Safetensors, RefusesATensorThatIsNotAWeight) {
  single({patterned_tensor("mask", "BOOL", {4}), patterned_tensor("w", "F32", {1})});
  const auto checkpoint = open();
  EXPECT_THAT(checkpoint->names(), ElementsAre("mask", "w"));
  const Error error = caught_error([&] { checkpoint->find("mask"); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("\"mask\" has elements of type BOOL"));
}

TEST_F(Safetensors, NeedsAConfigThatNamesTheArchitecture) {
  single({patterned_tensor("w", "F32", {1})});
  config(R"({"hidden_size": 4})");
  EXPECT_THAT(refusal().what(), HasSubstr("model_type"));
  std::filesystem::remove(directory.path() / "config.json");
  EXPECT_EQ(refusal().kind(), ErrorKind::not_found);
}

TEST_F(Safetensors, JoinsPairsOfMxfp4Tensors) {
  config(
      R"({"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4", "modules_to_not_convert": ["a"]}})");
  const SafetensorsData scales = patterned_tensor("experts.down_proj_scales", "U8", {2, 3, 4});
  sharded(
      {{patterned_tensor("experts.down_proj_blocks", "U8", {2, 3, 4, 16}), patterned_tensor("w", "F32", {1})},
       {scales}});
  const auto checkpoint = open();
  EXPECT_THAT(checkpoint->names(), ElementsAre("experts.down_proj", "w"));
  const auto joined = checkpoint->find("experts.down_proj");
  EXPECT_EQ(joined->format, WeightFormat::mxfp4);
  EXPECT_THAT(joined->shape, ElementsAre(2, 3, 128));
  const std::vector<std::byte> bytes = contents(*joined);
  ASSERT_EQ(bytes.size(), 24u * 17);
  EXPECT_EQ(bytes[23 * 17], scales.bytes[23]);
  EXPECT_THAT(checkpoint->config().unread(), IsEmpty());
}

TEST_F(Safetensors, RefusesHalfAPairAndPairsThatDoNotFit) {
  config(R"({"model_type": "gpt_oss", "quantization_config": {"quant_method": "mxfp4"}})");
  single({patterned_tensor("x_blocks", "U8", {2, 3, 4, 16})});
  EXPECT_THAT(refusal().what(), HasSubstr("\"x\" lacks its other half"));
  single({patterned_tensor("x_blocks", "U8", {2, 3, 4, 16}), patterned_tensor("x_scales", "U8", {2, 3, 5})});
  EXPECT_THAT(refusal().what(), HasSubstr("do not fit together"));
  single({patterned_tensor("x_blocks", "U8", {4, 8}), patterned_tensor("x_scales", "U8", {4})});
  EXPECT_THAT(refusal().what(), HasSubstr("do not fit together"));
  single({patterned_tensor("x_blocks", "U8", {1, 16}), patterned_tensor("x_scales", "U8", {1}),
          patterned_tensor("x", "F32", {1})});
  EXPECT_THAT(refusal().what(), HasSubstr("also present unquantized"));
}

TEST_F(Safetensors, ListsMissingShards) {
  sharded({{patterned_tensor("a", "F32", {1})},
           {patterned_tensor("b", "F32", {1})},
           {patterned_tensor("c", "F32", {1})}});
  std::filesystem::remove(directory.path() / shard_name(2, 3));
  std::filesystem::remove(directory.path() / shard_name(3, 3));
  const Error error = refusal();
  EXPECT_EQ(error.kind(), ErrorKind::not_found);
  EXPECT_THAT(error.what(), HasSubstr("2 of 3 files are missing"));
  EXPECT_THAT(error.what(), HasSubstr(shard_name(3, 3)));
}

TEST_F(Safetensors, RefusesShardsMissingFromTheIndex) {
  sharded({{patterned_tensor("a", "F32", {1})}, {patterned_tensor("b", "F32", {1})}});
  write_safetensors(directory.path() / shard_name(3, 3), std::vector{patterned_tensor("c", "F32", {1})});
  EXPECT_THAT(refusal().what(), HasSubstr(shard_name(3, 3)));
}

TEST_F(Safetensors, RefusesASingleFileTogetherWithShards) {
  sharded({{patterned_tensor("a", "F32", {1})}, {patterned_tensor("b", "F32", {1})}});
  single({patterned_tensor("a", "F32", {1})});
  EXPECT_THAT(refusal().what(), HasSubstr("\"model.safetensors\""));
}

TEST_F(Safetensors, RefusesAnIndexThatContradictsItsShards) {
  sharded({{patterned_tensor("a", "F32", {1})}, {patterned_tensor("b", "F32", {1})}});
  const std::string one = shard_name(1, 2), two = shard_name(2, 2);
  index(R"({"weight_map": {"a": ")" + one + R"(", "b": ")" + two + R"(", "c": ")" + two + R"("}})");
  EXPECT_THAT(refusal().what(), HasSubstr("expected tensor \"c\""));
  index(R"({"weight_map": {"a": ")" + two + R"(", "b": ")" + one + R"("}})");
  EXPECT_THAT(refusal().what(), HasSubstr("which the index places in"));
  write_safetensors(directory.path() / two,
                    std::vector{patterned_tensor("a", "F32", {1}), patterned_tensor("b", "F32", {1})});
  index(R"({"weight_map": {"a": ")" + one + R"(", "b": ")" + two + R"("}})");
  EXPECT_THAT(refusal().what(), HasSubstr("\"a\" is also in"));
}

TEST_F(Safetensors, NeverLeavesItsDirectory) {
  for (const std::string shard : {"../x.safetensors", "/etc/x.safetensors", "a/b.safetensors", "..", "",
                                  "x.bin", "a\\\\b.safetensors", "x.safetensors\\u0000"}) {
    index(R"({"weight_map": {"a": ")" + shard + R"("}})");
    const Error error = refusal();
    EXPECT_EQ(error.kind(), ErrorKind::corrupt) << shard;
    EXPECT_THAT(error.what(), HasSubstr("in this directory"));
  }
}

TEST_F(Safetensors, ExplainsMissingFiles) {
  EXPECT_EQ(refusal().kind(), ErrorKind::not_found);
  directory.write("pytorch_model.bin", "pickle");
  EXPECT_THAT(refusal().advice().why, HasSubstr("pickle"));
  write_safetensors(directory.path() / shard_name(1, 2), std::vector{patterned_tensor("a", "F32", {1})});
  EXPECT_THAT(refusal().what(), HasSubstr("model.safetensors.index.json"));
}

}  // namespace
}  // namespace inferno
