#include "cli/download/search_results.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "chat/json.h"
#include "checkpoint/config_json.h"
#include "engine/engine_options.h"
#include "model/listed_model.h"
#include "model/load.h"
#include "model/synthetic/random_checkpoint.h"
#include "model/synthetic/shapes.h"
#include "text/characters.h"

namespace inferno {
namespace {

using testing::HasSubstr;
using testing::Not;

hub::FoundOnHub model(const char* id, std::uint64_t parameters) {
  hub::FoundOnHub found;
  found.id = id;
  found.parameters = parameters;
  found.safetensors = {{"BF16", parameters}};
  found.files = {"model.safetensors"};
  return found;
}

const LocalMemory laptop = {.name = "memory", .device = {.free_bytes = 16'000'000'000}};

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

hub::FoundOnHub listed(const Shape& shape, const WeightFootprint& weights) {
  hub::FoundOnHub found = model("o/n", weights.parameters);
  Json config = Json::parse(shape.config);
  config["model_type"] = shape.type;
  found.config = config.dump();
  return found;
}

// On the same device, `search` knows the weights only by their listed size, which differs by less than 1 %
// from what `plan` reads in the headers. Everything else is the same sum.
TEST(SearchResults, AgreeWithPlanIfTheConfigurationComesAlong) {
  const auto backend = make_cpu_backend(1);
  for (const char* name : {"llama-3.2-1b", "llama-3.1-8b", "gpt-oss-20b"}) {
    const Shape& shape = shape_named(name);
    const auto checkpoint =
        random_checkpoint(parse_config(shape.config, name), shape.type, {.dense = WeightFormat::bf16});
    const ModelDescription described = describe_model(*checkpoint);
    const TensorPlan tensors = plan_weights(described.spec, *described.architecture, *checkpoint, *backend);
    for (const std::uint64_t gigabytes : {1, 8, 20, 64}) {
      LocalMemory memory = local_memory(*backend);
      memory.device.free_bytes = gigabytes * 1'000'000'000;
      const Footprint plan = model_footprint(described.spec, tensors, memory.device,
                                             {.max_tokens = EngineOptions().max_step_tokens},
                                             {.block_size = EngineOptions().block_size});
      hub::FoundOnHub found = listed(shape, plan.weights);
      const SearchResult result = judge(found, memory);
      EXPECT_FALSE(result.is_estimate);
      EXPECT_EQ(result.fits, plan.runs()) << name << " in " << gigabytes << " GB";
      EXPECT_NEAR(result.context, plan.max_context, 0.01 * plan.max_context + 32)
          << name << " in " << gigabytes;
    }
  }
}

TEST(SearchResults, EstimateAtMostTwiceTheCacheIfThereIsNoConfiguration) {
  for (const char* name : {"llama-3.2-1b", "llama-3.1-8b"}) {
    const Shape& shape = shape_named(name);
    const auto spec =
        describe_model(*random_checkpoint(parse_config(shape.config, name), shape.type, {})).spec;
    const std::uint64_t parameters = estimated_footprint(spec, 1, {}, {}).weights.parameters;
    const ModelSpec typical = typical_spec(parameters, 0);
    const auto cache = [](const ModelSpec& s) {
      return static_cast<double>(estimated_footprint(s, 1, {}, {.context = 8192}).cache);
    };
    EXPECT_GT(cache(typical), cache(spec) / 2) << name;
    EXPECT_LT(cache(typical), cache(spec) * 2) << name;
  }
}

TEST(SearchResults, EstimateIfTheConfigurationIsIncompleteOrAbsurd) {
  hub::FoundOnHub found = model("o/n", 1'000'000'000);
  for (const char* config :
       {"", "not JSON", R"({"model_type":"llama"})",
        R"({"model_type":"llama","num_hidden_layers":18446744073709551615,"hidden_size":1})"}) {
    found.config = config;
    const SearchResult result = judge(found, laptop);
    EXPECT_TRUE(result.is_estimate) << config;
    EXPECT_EQ(result.fits, true) << config;
  }
  found.parameters = std::numeric_limits<std::uint64_t>::max();
  found.gguf_context = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(judge(found, laptop).fits, true);
}

TEST(SearchResults, OfAnUnsupportedFamilyDoNotFit) {
  hub::FoundOnHub found = model("o/n", 1'000'000'000);
  found.config = R"({"model_type":"gemma3","hidden_size":2048})";
  const SearchResult result = judge(found, laptop);
  EXPECT_EQ(result.fits, false);
  EXPECT_FALSE(result.is_supported);
  EXPECT_THAT(search_table({result}, laptop), HasSubstr("no: gemma3 is not supported"));
  found.config.clear();
  found.gguf_architecture = "gemma3";
  EXPECT_FALSE(judge(found, laptop).is_supported);
  found.gguf_architecture = "qwen3";
  EXPECT_TRUE(judge(found, laptop).is_supported);
}

TEST(SearchResults, FitTheScreenWithoutCuttingAFigure) {
  std::vector<SearchResult> results = {judge(model("Qwen/Qwen2.5-0.5B-Instruct-GGUF", 1'000'000'000), laptop),
                                       judge(model("o/small", 8'000'000'000), laptop)};
  results[0].downloads = 1'234'567;
  for (int screen = 40; screen <= 140; ++screen) {
    const std::string table = search_table(results, laptop, screen);
    for (std::size_t at = 0; at < table.size(); at = table.find('\n', at) + 1)
      EXPECT_LT(columns(table.substr(at, table.find('\n', at) - at)), screen) << table;
    EXPECT_THAT(table, HasSubstr("   2.0 GB  ")) << screen;
    EXPECT_THAT(table, HasSubstr(fmt::format("memory, ~{} k\n", results[0].context / 1024))) << screen;
    // On a narrow screen, how much of a name is left depends on the digits of the context.
    const char* name = screen < 48   ? "ruct-GGUF"
                       : screen < 80 ? "Instruct-GGUF"
                                     : "Qwen/Qwen2.5-0.5B-Instruct-GGUF";
    EXPECT_THAT(table, HasSubstr(name)) << screen;
  }
  EXPECT_THAT(search_table(results, laptop, 80), Not(HasSubstr("LIKES")));
  EXPECT_THAT(search_table(results, laptop, 140), HasSubstr("  1.2 M  "));
  EXPECT_EQ(search_table(results, laptop), search_table(results, laptop, 140));
}

TEST(SearchResults, PrintsATableThatCannotDriveTheTerminal) {
  SearchResult evil = judge(model("o/\x1b[2Jn", 8'000'000'000), laptop);
  evil.gated = "auto";
  evil.downloads = 1'234'567;
  const std::string table = search_table({evil}, laptop);
  EXPECT_EQ(table.find('\x1b'), std::string::npos);
  EXPECT_THAT(table, HasSubstr("8.00 B"));
  EXPECT_THAT(table, HasSubstr("1.2 M"));
  EXPECT_THAT(table, HasSubstr("gated"));
  EXPECT_THAT(table, HasSubstr("  no\n"));
}

}  // namespace
}  // namespace inferno
