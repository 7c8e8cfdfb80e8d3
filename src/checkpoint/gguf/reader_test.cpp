#include "checkpoint/gguf/reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/caught_error.h"
#include "support/gguf_writer.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GgufHeader read(const GgufImage& image) {
  return read_gguf_header(*memory_source(image.bytes), "x.gguf");
}
GgufHeader read(const GgufWriter& writer) {
  return read(writer.image());
}

Error refusal(const GgufImage& image) {
  Error error = caught_error([&] { read(image); });
  EXPECT_THAT(error.what(), HasSubstr("x.gguf"));
  return error;
}

GgufWriter two_tensors() {
  return GgufWriter()
      .set("general.architecture", std::string("llama"))
      .tensor("a", 0, {4, 3})
      .tensor("b", 8, {64, 2});
}

TEST(GgufReader, ReversesDimensionsAndPlacesTensors) {
  const GgufImage image = two_tensors().image();
  const GgufHeader header = read(image);
  ASSERT_EQ(header.tensors.size(), 2u);
  const GgufTensor& b = header.tensors[1];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.format, WeightFormat::q8_0);
  EXPECT_THAT(b.shape, ElementsAre(2, 64));
  EXPECT_EQ(b.bytes, 4u * 34);
  EXPECT_EQ(b.offset % 32, 0u);
  EXPECT_EQ(b.offset + b.bytes, image.bytes.size());
}

TEST(GgufReader, ReadsVersionsTwoAndThree) {
  for (const std::uint32_t version : {2u, 3u})
    EXPECT_EQ(read(tiny_llama_gguf(2, version)).tensors.size(), 20u);
  for (const std::uint32_t version : {0u, 1u, 4u}) {
    const Error error = refusal(tiny_llama_gguf(1, version).image());
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("found version " + std::to_string(version)));
  }
}

TEST(GgufReader, RefusesBigEndianFiles) {
  EXPECT_THAT(refusal(tiny_llama_gguf(1, 0x03000000).image()).what(), HasSubstr("big-endian"));
  GgufImage image = two_tensors().image();
  std::memcpy(image.bytes.data(), "FUGG", 4);
  EXPECT_THAT(refusal(image).what(), HasSubstr("big-endian"));
  std::memcpy(image.bytes.data(), "tjgg", 4);
  EXPECT_EQ(refusal(image).kind(), ErrorKind::unsupported);
  std::memcpy(image.bytes.data(),
              "\x7f"
              "ELF",
              4);
  EXPECT_THAT(refusal(image).what(), HasSubstr("\"\\x7fELF\""));
}

TEST(GgufReader, UsesTheAlignmentOfTheFile) {
  GgufWriter writer = two_tensors();
  writer.set("general.alignment", std::uint32_t{4096}).align(4096);
  EXPECT_EQ(read(writer).tensors[1].offset, 8192u);
  for (const std::uint32_t alignment : {0u, 1u, 3u, 48u, 1u << 31}) {
    writer.set("general.alignment", alignment);
    EXPECT_THAT(refusal(writer.image()).what(), HasSubstr("general.alignment")) << alignment;
  }
  writer.set("general.alignment", std::uint64_t{32});
  EXPECT_THAT(refusal(writer.image()).what(), HasSubstr("general.alignment"));
}

TEST(GgufReader, ListsAllUnsupportedTypes) {
  GgufWriter writer = two_tensors();
  writer.tensor("c", 16, {256}).tensor("d", 15, {256}).tensor("e", 16, {256}).tensor("f", 77, {1});
  const Error error = refusal(writer.image());
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("IQ2_XXS, Q8_K, type 77"));
  EXPECT_THAT(error.advice().next, HasSubstr("Q4_K_M"));
}

TEST(GgufReader, RefusesRowsThatAreNotWholeBlocks) {
  GgufWriter writer = two_tensors();
  writer.tensor("c", 12, {128, 2}, std::vector<std::byte>(144));
  EXPECT_THAT(refusal(writer.image()).what(),
              HasSubstr("rows of 128 elements, but q4_k comes in blocks of 256"));
}

TEST(GgufReader, RefusesATensorBeyondTheEndOfTheFile) {
  GgufImage image = two_tensors().image();
  image.bytes.pop_back();
  EXPECT_THAT(refusal(image).what(), HasSubstr("tensor \"b\" needs 136 bytes at offset 64"));
  image = two_tensors().image();
  image.patch("tensor 1 offset", ~std::uint64_t{0} - 31);
  EXPECT_THAT(refusal(image).what(), HasSubstr("tensor \"b\""));
}

TEST(GgufReader, RefusesOverlappingTensors) {
  GgufImage image = two_tensors().image();
  image.patch("tensor 1 offset", 32);
  EXPECT_THAT(refusal(image).what(), HasSubstr("tensors \"a\" and \"b\" overlap"));
  image.patch("tensor 1 offset", 33);
  EXPECT_THAT(refusal(image).what(), HasSubstr("not a multiple of 32"));
}

TEST(GgufReader, RefusesShapesWhoseSizeOverflows) {
  GgufImage image = two_tensors().image();
  image.patch("tensor 0 dimension 0", std::uint64_t{1} << 62);
  image.patch("tensor 0 dimension 1", 4);
  EXPECT_THAT(refusal(image).what(), HasSubstr("invalid shape"));
  image.patch("tensor 0 dimension 0", std::uint64_t{1} << 63);
  EXPECT_THAT(refusal(image).what(), HasSubstr("has a dimension of 9223372036854775808"));
  image = two_tensors().image();
  image.patch("tensor 0 dimensions", 5);
  EXPECT_THAT(refusal(image).what(), HasSubstr("has 5 dimensions"));
}

TEST(GgufReader, RefusesCountsTooLargeForTheFile) {
  for (const char* field : {"keys", "tensors"}) {
    for (const std::uint64_t count : {std::uint64_t{1000}, std::uint64_t{1} << 32, ~std::uint64_t{0}}) {
      GgufImage image = two_tensors().image();
      image.patch(field, count);
      EXPECT_THAT(refusal(image).what(), HasSubstr("in a file of this size"));
    }
  }
}

TEST(GgufReader, RefusesKeysAndTensorsGivenTwice) {
  GgufWriter keys = two_tensors();
  keys.set_raw("general.architecture", 7, {std::byte{1}});
  EXPECT_THAT(refusal(keys.image()).what(), HasSubstr("duplicate key \"general.architecture\""));
  GgufWriter tensors = two_tensors();
  tensors.tensor("a", 0, {1});
  EXPECT_THAT(refusal(tensors.image()).what(), HasSubstr("duplicate tensor \"a\""));
}

TEST(GgufReader, RefusesInvalidValues) {
  const std::vector<std::byte> one = {std::byte{1}}, two = {std::byte{2}}, sixteen(16);
  EXPECT_THAT(refusal(two_tensors().set_raw("k", 13, one).image()).what(), HasSubstr("unknown type 13"));
  EXPECT_THAT(refusal(two_tensors().set_raw("k", 7, two).image()).what(), HasSubstr("0 or 1"));
  EXPECT_THAT(refusal(two_tensors().set_raw("", 7, one).image()).what(), HasSubstr("invalid key"));
  EXPECT_THAT(refusal(two_tensors().set_raw("\xC3(", 7, one).image()).what(), HasSubstr("invalid key"));
  std::vector<std::byte> nested = sixteen;
  nested[0] = std::byte{9};
  EXPECT_THAT(refusal(two_tensors().set_raw("k", 9, nested).image()).what(), HasSubstr("nested array"));
}

TEST(GgufReader, ReadsMetadataOfAFileWithUnsupportedTensors) {
  GgufWriter writer = two_tensors();
  writer.tensor("c", 16, {256}).set("tokenizer.ggml.tokens", std::vector<std::string>{"a", "b"});
  const GgufMetadata metadata = read_gguf_metadata(*memory_source(writer.image().bytes), "x.gguf");
  EXPECT_THAT(*metadata.strings("tokenizer.ggml.tokens"), ElementsAre("a", "b"));
}

TEST(GgufReader, ReadsAHeaderLongerThanItsFirstRead) {
  std::vector<std::string> tokens(40000);
  for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = std::string(i % 90, 'x') + std::to_string(i);
  GgufWriter writer = two_tensors();
  writer.set("tokenizer.ggml.tokens", tokens).set("last", std::uint32_t{7});
  const GgufHeader header = read(writer);
  const auto read_back = *header.metadata.strings("tokenizer.ggml.tokens");
  ASSERT_EQ(read_back.size(), tokens.size());
  EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), read_back.begin()));
  EXPECT_EQ(header.metadata.integer("last"), 7);
  EXPECT_EQ(header.tensors.size(), 2u);
}

}  // namespace
}  // namespace inferno
