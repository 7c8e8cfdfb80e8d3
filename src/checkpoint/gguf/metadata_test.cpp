#include "checkpoint/gguf/metadata.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "checkpoint/gguf/reader.h"
#include "support/caught_error.h"
#include "support/gguf_writer.h"
#include "support/temporary_directory.h"

namespace inferno {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

GgufMetadata metadata_of(const GgufWriter& writer) {
  return read_gguf_metadata(*memory_source(writer.image().bytes), "x.gguf");
}

TEST(GgufMetadata, DecodesEveryScalarType) {
  const GgufMetadata m = metadata_of(GgufWriter()
                                         .set("u8", std::uint8_t{200})
                                         .set("i8", std::int8_t{-100})
                                         .set("u16", std::uint16_t{60000})
                                         .set("i16", std::int16_t{-30000})
                                         .set("u32", std::uint32_t{4000000000})
                                         .set("i32", std::int32_t{-2000000000})
                                         .set("u64", std::uint64_t{1} << 62)
                                         .set("i64", std::numeric_limits<std::int64_t>::min())
                                         .set("f32", 0.5f)
                                         .set("f64", 0.1)
                                         .set("yes", true)
                                         .set("text", std::string("hello")));
  EXPECT_EQ(m.integer("u8"), 200);
  EXPECT_EQ(m.integer("i8"), -100);
  EXPECT_EQ(m.integer("u16"), 60000);
  EXPECT_EQ(m.integer("i16"), -30000);
  EXPECT_EQ(m.integer("u32"), 4000000000);
  EXPECT_EQ(m.integer("i32"), -2000000000);
  EXPECT_EQ(m.integer("u64"), std::int64_t{1} << 62);
  EXPECT_EQ(m.integer("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(m.number("f32"), 0.5);
  EXPECT_EQ(m.number("f64"), 0.1);
  EXPECT_EQ(m.number("i8"), -100.0);
  EXPECT_EQ(m.flag("yes"), true);
  EXPECT_EQ(m.text("text"), "hello");
}

TEST(GgufMetadata, DecodesLists) {
  const GgufMetadata m = metadata_of(GgufWriter()
                                         .set("strings", std::vector<std::string>{"a", "", "ccc"})
                                         .set("integers", std::vector<std::int32_t>{1, -2})
                                         .set("floats", std::vector<float>{0.5f, -1.0f})
                                         .set("flags", std::vector<bool>{true, false})
                                         .set("none", std::vector<std::string>{}));
  EXPECT_THAT(*m.strings("strings"), ElementsAre("a", "", "ccc"));
  EXPECT_THAT(*m.integers("integers"), ElementsAre(1, -2));
  EXPECT_THAT(*m.numbers("integers"), ElementsAre(1.0, -2.0));
  EXPECT_THAT(*m.numbers("floats"), ElementsAre(0.5, -1.0));
  EXPECT_THAT(*m.integers("flags"), ElementsAre(1, 0));
  EXPECT_THAT(*m.strings("none"), IsEmpty());
}

TEST(GgufMetadata, ReturnsNothingForAnAbsentKey) {
  const GgufMetadata m = metadata_of(GgufWriter());
  EXPECT_FALSE(m.has("k") || m.integer("k") || m.number("k") || m.flag("k") || m.text("k") ||
               m.strings("k") || m.integers("k") || m.numbers("k"));
}

TEST(GgufMetadata, RefusesAValueOfAnotherType) {
  const GgufMetadata m = metadata_of(GgufWriter()
                                         .set("text", std::string("x"))
                                         .set("float", 1.0f)
                                         .set("flag", true)
                                         .set("list", std::vector<std::string>{"x"})
                                         .set("numbers", std::vector<float>{1.0f})
                                         .set("huge", ~std::uint64_t{0}));
  const std::vector<std::function<void()>> mistakes = {
      [&] { m.integer("text"); },   [&] { m.integer("float"); },    [&] { m.integer("flag"); },
      [&] { m.integer("list"); },   [&] { m.integer("huge"); },     [&] { m.number("text"); },
      [&] { m.number("numbers"); }, [&] { m.flag("float"); },       [&] { m.text("list"); },
      [&] { m.text("flag"); },      [&] { m.strings("numbers"); },  [&] { m.strings("text"); },
      [&] { m.integers("list"); },  [&] { m.integers("numbers"); }, [&] { m.numbers("list"); }};
  for (const auto& mistake : mistakes) {
    const Error error = caught_error(mistake);
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_THAT(error.what(), HasSubstr("x.gguf: expected"));
  }
}

TEST(GgufMetadata, ReadsOnlyTheHeaderOfAFile) {
  const TemporaryDirectory directory;
  const auto path = directory.path() / "vocab.gguf";
  GgufWriter().set("general.architecture", std::string("unheard-of")).write(path);
  EXPECT_EQ(read_gguf_metadata(path).text("general.architecture"), "unheard-of");
  EXPECT_EQ(caught_error([&] { read_gguf_metadata(directory.path() / "absent.gguf"); }).kind(),
            ErrorKind::not_found);
}

}  // namespace
}  // namespace inferno
