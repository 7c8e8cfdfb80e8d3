#include "backend/cache_types.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace inferno {
namespace {

TEST(CacheTypes, AreChosenByOneWordOrTwo) {
  const CacheChoice both = parse_cache_choice("q8_0", "--cache-type");
  EXPECT_EQ(both.keys, DType::q8_0);
  EXPECT_EQ(both.values, DType::q8_0);
  const CacheChoice apart = parse_cache_choice("q8_0,f16", "--cache-type");
  EXPECT_EQ(apart.keys, DType::q8_0);
  EXPECT_EQ(apart.values, DType::f16);
  EXPECT_TRUE(parse_cache_choice("", "").is_auto());
  EXPECT_TRUE(parse_cache_choice("auto,auto", "").is_auto());
  EXPECT_FALSE(parse_cache_choice("auto,fp8", "").is_auto());
}

TEST(CacheTypes, AreThoseOfTheDeviceWhereNoneIsChosen) {
  EXPECT_EQ(CacheChoice().with_default(DType::bf16), (CacheTypes{DType::bf16, DType::bf16}));
  EXPECT_EQ(parse_cache_choice("auto,fp8", "").with_default(DType::f32),
            (CacheTypes{DType::f32, DType::f8_e4m3}));
}

TEST(CacheTypes, HaveTheNamesThatChooseThem) {
  for (const char* text : {"auto", "f32", "f16", "bf16", "q8_0", "fp8", "q8_0,f16", "auto,fp8"}) {
    EXPECT_EQ(name_of(parse_cache_choice(text, "")), text);
  }
  EXPECT_EQ(name_of(parse_cache_choice("fp8_e4m3", "")), "fp8");  // vLLM's name
  EXPECT_EQ(name_of(CacheTypes{DType::q8_0, DType::bf16}), "q8_0,bf16");
}

TEST(CacheTypes, ThatAreUnknownAreAnErrorWithTheWordsToUse) {
  for (const char* text : {"q4_0", "Q8_0", "q8_0,", ",q8_0", "q8_0,f16,f16", " f16", "i32"}) {
    try {
      parse_cache_choice(text, "--cache-type");
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_request);
      const std::string what = error.what();
      EXPECT_TRUE(what.starts_with("--cache-type \"")) << what;
      EXPECT_TRUE(what.ends_with("expected auto, f32, f16, bf16, q8_0 or fp8")) << what;
    }
  }
}

}  // namespace
}  // namespace inferno
