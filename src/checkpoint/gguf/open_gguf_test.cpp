#include "checkpoint/gguf/open_gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/caught_error.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

GgufWriter part(std::string tensor) {
  return GgufWriter().tensor(std::move(tensor), 0, {2});
}
GgufWriter first_part(std::string tensor) {
  return part(std::move(tensor)).set("general.architecture", std::string("llama"));
}

class SplitGguf : public testing::Test {
 protected:
  void write(std::vector<GgufWriter> parts, std::size_t tensors) {
    write_split_gguf(directory.path(), "m", std::move(parts), tensors);
  }
  std::filesystem::path path(int number, int count) const {
    return directory.path() / gguf_split_name("m", number, count);
  }
  std::unique_ptr<Checkpoint> open() const { return open_gguf(path(1, 3)); }
  Error refusal() const {
    return caught_error([&] { open(); });
  }

  TemporaryDirectory directory;
};

TEST(Gguf, OpensAFile) {
  const TemporaryDirectory directory;
  tiny_llama_gguf().write(directory.path() / "m.gguf");
  const auto checkpoint = open_gguf(directory.path() / "m.gguf");
  EXPECT_EQ(checkpoint->container(), Container::gguf);
  EXPECT_EQ(checkpoint->architecture(), "llama");
  EXPECT_EQ(checkpoint->names().size(), 11u);
  EXPECT_THAT(checkpoint->find("blk.0.attn_k.weight")->shape, ElementsAre(4, 8));
  EXPECT_FALSE(checkpoint->find("blk.1.attn_k.weight"));
  ASSERT_NE(gguf_metadata(*checkpoint), nullptr);
  EXPECT_EQ(gguf_metadata(*checkpoint)->integer("tokenizer.ggml.eos_token_id"), 3);
}

TEST(Gguf, ReadsTheBytesOfATensor) {
  const std::vector<std::byte> bytes = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};
  GgufWriter writer = first_part("a");
  writer.tensor("b", 24, {4}, bytes);
  const auto checkpoint = open_gguf(memory_source(writer.image().bytes), "x.gguf");
  std::vector<std::byte> read(4);
  checkpoint->find("b")->read(0, read);
  EXPECT_EQ(read, bytes);
}

TEST(Gguf, NeedsAnArchitecture) {
  const Error error = caught_error([] { open_gguf(memory_source(part("a").image().bytes), "x.gguf"); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.what(), HasSubstr("general.architecture"));
}

TEST(GgufSplitName, IsParsedAndWritten) {
  const auto name = parse_gguf_split_name("a-b-00002-of-00010.gguf");
  ASSERT_TRUE(name);
  EXPECT_EQ(name->stem, "a-b");
  EXPECT_EQ(name->number, 2);
  EXPECT_EQ(name->count, 10);
  EXPECT_EQ(gguf_split_name("a-b", 2, 10), "a-b-00002-of-00010.gguf");
  for (const char* other :
       {"a.gguf", "a-1-of-2.gguf", "a-00003-of-00002.gguf", "a-00000-of-00002.gguf", "a-00001-of-00002.bin",
        "a-+0001-of-00002.gguf", "-of-.gguf", "", "a-00001_of-00002.gguf", "a-0000x-of-00002.gguf"}) {
    EXPECT_FALSE(parse_gguf_split_name(other)) << other;
  }
}

TEST_F(SplitGguf, OpensFromItsFirstPart) {
  write({first_part("a"), part("b"), part("c")}, 3);
  EXPECT_THAT(open()->names(), ElementsAre("a", "b", "c"));
}

TEST_F(SplitGguf, PointsFromALaterPartToTheFirst) {
  write({first_part("a"), part("b"), part("c")}, 3);
  const Error error = caught_error([&] { open_gguf(path(2, 3)); });
  EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
  EXPECT_THAT(error.advice().next, HasSubstr("m-00001-of-00003.gguf"));
}

TEST_F(SplitGguf, NamesAMissingPart) {
  write({first_part("a"), part("b"), part("c")}, 3);
  std::filesystem::remove(path(3, 3));
  EXPECT_EQ(refusal().kind(), ErrorKind::not_found);
  EXPECT_THAT(refusal().what(), HasSubstr("m-00003-of-00003.gguf"));
}

TEST_F(SplitGguf, RefusesPartsThatDoNotBelongTogether) {
  write({first_part("a"), part("b"), part("c")}, 3);
  std::filesystem::copy_file(path(3, 3), path(2, 3), std::filesystem::copy_options::overwrite_existing);
  EXPECT_THAT(refusal().what(), HasSubstr("expected part 2 of 3, found split.no 2"));
  write({first_part("a"), part("b"), part("b")}, 3);
  EXPECT_THAT(refusal().what(), HasSubstr("\"b\" is also in an earlier part"));
  write({first_part("a"), part("b"), part("c")}, 4);
  EXPECT_THAT(refusal().what(), HasSubstr("expected 4 tensors in 3 parts, found 3"));
}

TEST_F(SplitGguf, RefusesAPartUnderAnotherName) {
  write({first_part("a"), part("b"), part("c")}, 3);
  const auto renamed = directory.path() / "renamed.gguf";
  std::filesystem::copy_file(path(1, 3), renamed);
  const Error error = caught_error([&] { open_gguf(renamed); });
  EXPECT_EQ(error.kind(), ErrorKind::corrupt);
  EXPECT_THAT(error.advice().next, HasSubstr("-00001-of-00003.gguf"));
}

TEST_F(SplitGguf, RefusesANameWithMorePartsThanTheHeader) {
  first_part("a").write(path(1, 3));
  EXPECT_EQ(refusal().kind(), ErrorKind::corrupt);
}

}  // namespace
}  // namespace inferno
