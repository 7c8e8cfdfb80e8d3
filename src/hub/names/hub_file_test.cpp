#include "hub/names/hub_file.h"

#include <gtest/gtest.h>

namespace inferno::hub {
namespace {

const std::string oid(40, 'a'), sha(64, 'b');

TEST(TreeFile, ReadsWhatItWrites) {
  const std::vector<HubFile> files = {{"config.json", 12, oid, ""},
                                      {"a/model.safetensors", 5'000'000'000, oid, sha}};
  const auto read = parse_tree(tree_text(files));
  ASSERT_TRUE(read);
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ((*read)[0].path, "a/model.safetensors");
  EXPECT_EQ((*read)[0].size, 5'000'000'000u);
  EXPECT_EQ((*read)[0].etag(), sha);
  EXPECT_EQ((*read)[1].etag(), oid);
}

TEST(TreeFile, TakesTheSizeOfALargeFileNotOfItsPointer) {
  const auto read = parse_tree(R"({"format_version":1,"files":{"m":{"size":134,"blob_id":")" + oid +
                               R"(","lfs_sha256":")" + sha + R"(","lfs_size":999,"xet_hash":"x"}}})");
  ASSERT_TRUE(read);
  EXPECT_EQ(read->at(0).size, 999u);
}

TEST(TreeFile, RefusesInvalidText) {
  for (const char* text : {"", "[]", "{", "{}", R"({"format_version":2,"files":{}})",
                           R"({"format_version":1})", R"({"format_version":1,"files":[]})"}) {
    EXPECT_FALSE(parse_tree(text)) << text;
  }
  const auto read = parse_tree(
      R"({"format_version":1,"files":{"a":1,"b":{},"c":{"size":-1},"d":{"size":1,"blob_id":"../x"}}})");
  ASSERT_TRUE(read);
  EXPECT_TRUE(read->empty());
  EXPECT_FALSE(read_tree("/nothing/here.json"));
}

}  // namespace
}  // namespace inferno::hub
