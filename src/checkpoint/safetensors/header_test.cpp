#include "checkpoint/safetensors/header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "support/caught_error.h"
#include "support/safetensors_writer.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<SafetensorsTensor> read(std::vector<std::byte> image) {
  return read_safetensors_header(*memory_source(std::move(image)), "x.safetensors");
}

std::vector<SafetensorsTensor> read(std::string_view header, std::size_t data_bytes) {
  return read(safetensors_image(header, std::vector<std::byte>(data_bytes)));
}

std::string refusal(std::string_view header, std::size_t data_bytes) {
  const Error error = caught_error([&] { read(header, data_bytes); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt) << error.what();
  EXPECT_THAT(error.what(), HasSubstr("x.safetensors"));
  return error.what();
}

TEST(SafetensorsHeader, PlacesTensorsInTheFile) {
  const std::vector<SafetensorsData> data = {
      patterned_tensor("b", "F32", {2, 3}), patterned_tensor("a", "BF16", {4}),
      patterned_tensor("scalar", "I64", {}), patterned_tensor("none", "U8", {0, 5})};
  const auto image = safetensors_image(data);
  const auto tensors = read(image);
  ASSERT_EQ(tensors.size(), 4u);
  for (const SafetensorsTensor& tensor : tensors) {
    const auto same = [&](const SafetensorsData& d) { return d.name == tensor.name; };
    const SafetensorsData& expected = *std::find_if(data.begin(), data.end(), same);
    EXPECT_EQ(tensor.shape, expected.shape);
    EXPECT_EQ(tensor.type->name, expected.dtype);
    ASSERT_EQ(tensor.bytes, expected.bytes.size());
    EXPECT_TRUE(std::equal(expected.bytes.begin(), expected.bytes.end(),
                           image.begin() + static_cast<std::ptrdiff_t>(tensor.offset)));
  }
}

TEST(SafetensorsHeader, AcceptsAFileWithoutTensorsAndPaddingAfterTheHeader) {
  EXPECT_THAT(read("{}", 0), IsEmpty());
  EXPECT_THAT(read("{}      ", 0), IsEmpty());
}

TEST(SafetensorsHeader, AcceptsTypesThatAreNotWeights) {
  EXPECT_EQ(safetensors_type("BOOL")->format, std::nullopt);
  EXPECT_EQ(safetensors_type("U32")->bytes, 4u);
  EXPECT_EQ(safetensors_type("F8_E4M3")->format, WeightFormat::f8_e4m3);
  EXPECT_EQ(safetensors_type("F4"), nullptr);
}

TEST(SafetensorsHeader, RefusesUnknownTypesByName) {
  const Error error =
      caught_error([] { read(R"({"w":{"dtype":"F4","shape":[2],"data_offsets":[0,1]}})", 1); });
  EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  EXPECT_THAT(error.what(), HasSubstr("\"w\""));
  EXPECT_THAT(error.what(), HasSubstr("\"F4\""));
}

TEST(SafetensorsHeader, RefusesAHeaderLongerThanTheFile) {
  for (const std::uint64_t length : {std::uint64_t{100'000'001}, ~std::uint64_t{0}, std::uint64_t{3}}) {
    std::vector<std::byte> image(sizeof(length) + 2);
    std::memcpy(image.data(), &length, sizeof(length));
    EXPECT_THAT(caught_error([&] { read(image); }).what(), HasSubstr("header claims"));
  }
  EXPECT_THAT(caught_error([] { read(std::vector<std::byte>(7)); }).what(), HasSubstr("found 7 bytes"));
}

TEST(SafetensorsHeader, RefusesGapsOverlapAndTrailingBytes) {
  const char* one = R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}})";
  EXPECT_EQ(read(one, 4).size(), 1u);
  EXPECT_THAT(refusal(one, 5), HasSubstr("the file has 5"));
  EXPECT_THAT(refusal(one, 3), HasSubstr("the file has 3"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[1,5]}})", 5),
              HasSubstr("found it at 1"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},
                          "b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}})",
                      7),
              HasSubstr("expected tensor \"b\" at byte 4"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", 4),
              HasSubstr("not below the first"));
}

TEST(SafetensorsHeader, RefusesSizesThatContradictShapes) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4),
              HasSubstr("cannot have 4 bytes"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
              HasSubstr("cannot have 0 bytes"));
}

TEST(SafetensorsHeader, RefusesKeysGivenTwice) {
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},
                          "a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}})",
                      2),
              HasSubstr("\"a\" appears twice"));
  EXPECT_THAT(refusal(R"({"a":{"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr("twice"));
}

TEST(SafetensorsHeader, RefusesANameWithAZeroByte) {
  EXPECT_THAT(refusal(R"({"a\u0000b":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 1),
              HasSubstr(R"("a\x00b" is not the name of a tensor)"));
}

TEST(SafetensorsHeader, AcceptsOnlyStringsAsMetadata) {
  EXPECT_THAT(read(R"({"__metadata__":{"format":"pt"}})", 0), IsEmpty());
  EXPECT_THAT(refusal(R"({"__metadata__":{"format":1}})", 0), HasSubstr("only strings"));
  EXPECT_THAT(refusal(R"({"__metadata__":{"a":{"b":"c"}}})", 0), HasSubstr("__metadata__"));
  EXPECT_THAT(refusal(R"({"__metadata__":["a"]})", 0), HasSubstr("__metadata__"));
}

}  // namespace
}  // namespace inferno
