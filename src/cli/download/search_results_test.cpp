#include "cli/download/search_results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace inferno {
namespace {

using testing::HasSubstr;

hub::FoundOnHub model(const char* id, std::uint64_t parameters) {
  hub::FoundOnHub found;
  found.id = id;
  found.parameters = parameters;
  found.safetensors = {{"BF16", parameters}};
  found.files = {"model.safetensors"};
  return found;
}

const LocalMemory laptop = {.device = "memory", .bytes = 16'000'000'000, .cache_element = 4};

TEST(SearchResults, CountsBytesByType) {
  EXPECT_EQ(weight_bytes({{"BF16", 10}, {"F32", 1}, {"U8", 3}}), 27u);
  EXPECT_EQ(weight_bytes({}), 0u);
}

TEST(SearchResults, SaysWhatFitsAndWithHowMuchContext) {
  const SearchResult small = judge(model("o/small", 1'000'000'000), laptop);
  EXPECT_EQ(small.fits, true);
  EXPECT_TRUE(small.is_estimate);
  EXPECT_GT(small.context, 50'000);
  EXPECT_EQ(judge(model("o/large", 70'000'000'000), laptop).fits, false);
  hub::FoundOnHub unknown;
  unknown.id = "o/unknown";
  EXPECT_EQ(judge(unknown, laptop).fits, std::nullopt);
}

TEST(SearchResults, IsExactWhereTheConfigurationComesAlong) {
  hub::FoundOnHub found = model("o/n", 1'000'000'000);
  found.config =
      R"({"num_hidden_layers":16,"num_attention_heads":32,"num_key_value_heads":8,"hidden_size":2048,)"
      R"("max_position_embeddings":4096})";
  EXPECT_EQ(cache_elements(found, found.parameters).per_token, 2u * 16 * 8 * 64);
  const SearchResult result = judge(found, laptop);
  EXPECT_FALSE(result.is_estimate);
  EXPECT_EQ(result.context, 4096);
  found.config = R"({"num_hidden_layers":18446744073709551615,"num_attention_heads":1,"hidden_size":1})";
  EXPECT_TRUE(cache_elements(found, found.parameters).is_estimate);
  found.config = "not JSON";
  EXPECT_TRUE(cache_elements(found, found.parameters).is_estimate);
}

TEST(SearchResults, PrintsATableThatCannotDriveTheTerminal) {
  SearchResult evil = judge(model("o/\x1b[2Jn", 8'000'000'000), laptop);
  evil.gated = "auto";
  evil.downloads = 1'234'567;
  const std::string table = search_table({evil}, laptop);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_THAT(table, HasSubstr("8.0 B"));
  EXPECT_THAT(table, HasSubstr("1.2 M"));
  EXPECT_THAT(table, HasSubstr("gated"));
  EXPECT_THAT(table, HasSubstr("  no\n"));
}

}  // namespace
}  // namespace inferno
