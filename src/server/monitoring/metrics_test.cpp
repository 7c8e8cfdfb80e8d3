#include "server/monitoring/metrics.h"
#include "support/source_dir.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <thread>
#include <vector>

namespace inferno::server {
namespace {

using testing::HasSubstr;
using testing::Not;

MetricsState example_state() {
  MetricsState state;
  state.model_name = "tiny";
  state.version = "1.2";
  state.engine.running = 3;
  state.engine.waiting = 2;
  state.engine.blocks = 100;
  state.engine.free_blocks = 75;
  state.engine.preemptions = 4;
  state.engine.mask_seconds = 1.5;
  state.engine.max_mask_seconds = 0.25;
  state.engine.block_size = 32;
  state.engine.cache_types = {DType::q8_0, DType::f16};
  state.engine.cache_token_bytes = 1568;
  state.context = 1000;
  state.is_ready = true;
  return state;
}

Answer example_answer(const std::string& reason, std::size_t tokens) {
  Answer answer;
  answer.finish_reason = reason;
  answer.tokens.resize(tokens);
  answer.total_seconds = 1.25;
  answer.finished.prompt_tokens = 40;
  answer.finished.cached_tokens = 32;
  answer.finished.queue_seconds = 0.1;
  answer.finished.prompt_seconds = 0.2;
  answer.finished.decode_seconds = 0.9;
  return answer;
}

std::string one_model(const std::string& name) {
  return name + "{model_name=\"tiny\"} ";
}

TEST(Metrics, ShowsTheGaugesThatGatewaysRead) {
  const std::string text = Metrics().text(example_state());
  EXPECT_THAT(text, HasSubstr(one_model("vllm:num_requests_running") + "3\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:num_requests_waiting") + "2\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:kv_cache_usage_perc") + "0.25\n"));
  EXPECT_THAT(text, HasSubstr("vllm:cache_config_info{model_name=\"tiny\",block_size=\"32\","
                              "num_gpu_blocks=\"100\",cache_dtype=\"q8_0,f16\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(one_model("inferno_kv_cache_bytes_per_token") + "1568\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:num_preemptions_total") + "4\n"));
  EXPECT_THAT(text, HasSubstr(one_model("inferno_mask_seconds_total") + "1.5\n"));
  EXPECT_THAT(text, HasSubstr(one_model("inferno_mask_max_seconds") + "0.25\n"));
}

TEST(Metrics, CountsTokensOfAnswers) {
  Metrics metrics;
  metrics.first_token(0.05);
  for (int token = 1; token < 10; ++token) metrics.token_gap(0.1);
  metrics.answer(example_answer("tool_calls", 10), 1.7);
  Answer second = example_answer("length", 10);
  second.finished.choice = 1;
  metrics.answer(second, 1.7);
  const std::string text = metrics.text(example_state());
  EXPECT_THAT(text, HasSubstr(one_model("vllm:prompt_tokens_total") + "40\n")) << "choices share a prompt";
  EXPECT_THAT(text, HasSubstr(one_model("vllm:prefix_cache_queries_total") + "40\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:prefix_cache_hits_total") + "32\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:generation_tokens_total") + "10\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:request_success_total{model_name=\"tiny\",finished_reason=\"stop\"} 1\n"));
  EXPECT_THAT(text,
              HasSubstr("vllm:request_success_total{model_name=\"tiny\",finished_reason=\"length\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:inter_token_latency_seconds_count") + "9\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:request_time_per_output_token_seconds_sum") + "0.2\n"));
}

TEST(Metrics, CountsARequestCancelledInTheQueueWithoutItsPrompt) {
  Metrics metrics;
  metrics.answer(example_answer("cancelled", 0), 1.7);
  metrics.failed_answer();
  metrics.cancelled_by_disconnect();
  const std::string text = metrics.text(example_state());
  EXPECT_THAT(text, HasSubstr("finished_reason=\"abort\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("finished_reason=\"error\"} 1\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:prompt_tokens_total") + "0\n"));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:request_queue_time_seconds_count") + "1\n"));
  EXPECT_THAT(text, HasSubstr(one_model("inferno_cancelled_by_disconnect_total") + "1\n"));
}

TEST(Metrics, SortsValuesIntoCumulativeBuckets) {
  Metrics metrics;
  for (const double seconds : {0.0005, 0.001, 0.0011, 3000.0}) metrics.first_token(seconds);
  const std::string text = metrics.text(example_state());
  const auto bucket = [](const char* bound, int count) {
    return "vllm:time_to_first_token_seconds_bucket{model_name=\"tiny\",le=\"" + std::string(bound) + "\"} " +
           std::to_string(count) + "\n";
  };
  EXPECT_THAT(text, HasSubstr(bucket("0.001", 2)));
  EXPECT_THAT(text, HasSubstr(bucket("0.005", 3)));
  EXPECT_THAT(text, HasSubstr(bucket("1.0", 3)));
  EXPECT_THAT(text, HasSubstr(bucket("2560.0", 3)));
  EXPECT_THAT(text, HasSubstr(bucket("+Inf", 4)));
  EXPECT_THAT(text, HasSubstr(one_model("vllm:time_to_first_token_seconds_count") + "4\n"));
}

TEST(Metrics, ShowsLengthsUpToTheContext) {
  const std::string text = Metrics().text(example_state());
  EXPECT_THAT(text, HasSubstr("vllm:request_prompt_tokens_bucket{model_name=\"tiny\",le=\"1000.0\"} 0\n"));
  EXPECT_THAT(text, Not(HasSubstr("le=\"2000.0\"")));
}

TEST(Metrics, EscapesLabels) {
  MetricsState state = example_state();
  state.model_name = "a\"b\\c\nd\xff";
  const std::string text = Metrics().text(state);
  EXPECT_THAT(text, HasSubstr("{model_name=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\"}"));
}

TEST(Metrics, LetsNoClientChooseLabels) {
  Metrics metrics;
  metrics.ignored_field("user");
  metrics.ignored_field("tools[7].function.strict");
  for (int name = 0; name < 1000; ++name) metrics.ignored_field("field_" + std::to_string(name));
  const std::string text = metrics.text(example_state());
  EXPECT_THAT(text, HasSubstr("inferno_ignored_fields_total{model_name=\"tiny\",field=\"user\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inferno_ignored_fields_total{model_name=\"tiny\",field=\"strict\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("inferno_ignored_fields_total{model_name=\"tiny\",field=\"other\"} 1000\n"));
}

TEST(Metrics, CountsRequestsByRouteAndStatus) {
  Metrics metrics;
  metrics.request("/v1/models/{id}", 404);
  metrics.request("/v1/models/{id}", 404);
  metrics.refused("queue_full");
  const std::string text = metrics.text(example_state());
  EXPECT_THAT(text, HasSubstr("inferno_http_requests_total{model_name=\"tiny\",route=\"/v1/models/{id}\","
                              "status=\"404\"} 2\n"));
  EXPECT_THAT(text,
              HasSubstr("inferno_refused_requests_total{model_name=\"tiny\",reason=\"queue_full\"} 1\n"));
}

// Every line is a comment or a sample, every sample follows the HELP and TYPE of its metric, and no metric or
// sample occurs twice.
TEST(Metrics, IsWellFormedText) {
  Metrics metrics;
  metrics.request("/health", 200);
  metrics.ignored_field("user");
  metrics.refused("queue_full");
  const std::regex sample(R"(([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^}]*\})? (NaN|[-+0-9.e]+))");
  std::map<std::string, int> seen;
  std::string metric;
  std::istringstream lines(metrics.text(example_state()));
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    if (line.starts_with("# HELP ")) {
      metric = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_EQ(++seen[metric + " HELP"], 1);
    } else if (line.starts_with("# TYPE ")) {
      EXPECT_EQ(line.substr(7, metric.size()), metric);
    } else {
      ASSERT_TRUE(std::regex_match(line, parts, sample)) << line;
      const std::string name = parts[1];
      EXPECT_TRUE(name == metric || name == metric + "_bucket" || name == metric + "_sum" ||
                  name == metric + "_count")
          << line;
      EXPECT_EQ(++seen[name + parts[2].str()], 1) << line;
    }
  }
}

std::set<std::string> metrics_named_in(const std::string& file) {
  std::ifstream input(INFERNO_SOURCE_DIR "/" + file);
  std::stringstream text;
  text << input.rdbuf();
  const std::string whole = text.str();
  const std::regex name(R"((vllm:|inferno_|process_)[a-z0-9_]+)");
  const std::sregex_iterator end;
  std::set<std::string> names;
  for (std::sregex_iterator at(whole.begin(), whole.end(), name); at != end; ++at) names.insert(at->str());
  return names;
}

TEST(Metrics, HasWhatTheDashboardAndTheAlertsName) {
  std::set<std::string> existing;
  std::istringstream lines(Metrics().text(example_state()));
  for (std::string line; std::getline(lines, line);) {
    const std::size_t start = line.starts_with("# TYPE ") ? 7 : 0;
    existing.insert(line.substr(start, line.find_first_of(" {", start) - start));
  }
  for (const char* file : {"deploy/grafana-dashboard.json", "deploy/alerts.yml"}) {
    const std::set<std::string> names = metrics_named_in(file);
    EXPECT_GE(names.size(), 8U) << file;
    for (const std::string& name : names) EXPECT_TRUE(existing.contains(name)) << file << ": " << name;
  }
}

TEST(Metrics, LosesNothingToThreads) {
  Metrics metrics;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&metrics] {
      for (int turn = 0; turn < 1000; ++turn) {
        metrics.token_gap(0.5);
        metrics.request("/health", 200);
      }
    });
  }
  for (int turn = 0; turn < 10; ++turn) metrics.text(example_state());
  for (std::thread& thread : threads) thread.join();
  const std::string text = metrics.text(example_state());
  EXPECT_THAT(text, HasSubstr(one_model("vllm:inter_token_latency_seconds_sum") + "2000\n"));
  EXPECT_THAT(text, HasSubstr("route=\"/health\",status=\"200\"} 4000\n"));
}

}  // namespace
}  // namespace inferno::server
