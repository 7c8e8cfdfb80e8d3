#include "cli/bench/serve_load.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/utf8.h"
#include "cli/bench/http_target.h"
#include "cli/bench/load_client.h"
#include "cli/bench/load_plan.h"
#include "cli/bench/load_statistics.h"
#include "cli/commit.h"
#include "cli/terminal/report_error.h"
#include "cli/terminal/streams.h"
#include "cli/version.h"

namespace inferno {
namespace {

using Json = nlohmann::ordered_json;
using namespace load;

constexpr double probe_seconds = 600.0;

// http://host/prefix and http://host/prefix/v1 mean the same server.
HttpTarget base_of(const std::string& url) {
  HttpTarget target = http_target(url);
  while (target.path.ends_with('/')) target.path.pop_back();
  if (target.path.ends_with("/v1")) target.path.resize(target.path.size() - 3);
  return target;
}

// The name of its first model and its context; 0 if it does not say.
struct ServedModel {
  std::string name;
  int context = 0;
};

ServedModel served_model(const ServerAddress& server) {
  const EventStream response = exchange(server, server.request("GET", "/v1/models", ""), 30.0);
  const Json list = Json::parse(response.body(), nullptr, /*allow_exceptions=*/false);
  const bool has_models = response.status() == 200 && list.is_object() && list.contains("data") &&
                          list["data"].is_array() && !list["data"].empty() && list["data"][0].is_object();
  if (!has_models) {
    fail(ErrorKind::network,
         fmt::format("/v1/models: status {}: {}", response.status(),
                     printable(response.body().substr(0, 400))),
         {.why = {},
          .next = response.status() == 401 ? "pass --api-key, or set INFERNO_API_KEY"
                                           : "name the model with --served-model-name"});
  }
  const Json& first = list["data"][0];
  ServedModel model;
  if (first.contains("id") && first["id"].is_string()) model.name = first["id"];
  if (first.contains("max_model_len") && first["max_model_len"].is_number_integer()) {
    model.context = first["max_model_len"];
  }
  return model;
}

// Writes the requests of one test.
class Sender {
 public:
  Sender(const ServeLoadOptions& options, const ServerAddress& server, std::string model, std::uint64_t seed)
      : options_(options), server_(server), model_(std::move(model)), prompts_(seed, options.shared_prefix) {}

  std::string request(std::uint64_t number, const PlannedRequest& planned) const {
    return with_prompt(prompts_.prompt(number, planned), planned.output_tokens);
  }

  // Two requests: do they work, what does the server reject, how many tokens has the average word, and the
  // template around them. They also warm the server up.
  void probe(int context) {
    int all = PromptWriter::vocabulary_size() + 1;
    if (context > 0) all = std::clamp(context / 4, 2, all);
    const int tokens = probe_one(all), of_one_word = probe_one(1);
    if (tokens > 0 && of_one_word > 0) prompts_.calibrate(1, of_one_word, all, tokens);
  }

  bool ignores_eos() const { return ignores_eos_; }

 private:
  bool is_chat() const { return options_.endpoint == "chat"; }

  std::string with_prompt(const std::string& prompt, int output_tokens) const {
    Json body = {{"model", model_}};
    if (is_chat()) {
      body["messages"] = {{{"role", "user"}, {"content", prompt}}};
    } else {
      body["prompt"] = prompt;
    }
    body["max_tokens"] = output_tokens;
    body["temperature"] = options_.temperature;
    if (ignores_eos_) body["ignore_eos"] = true;
    body["stream"] = true;
    body["stream_options"] = {{"include_usage", true}};
    return server_.request("POST", is_chat() ? "/v1/chat/completions" : "/v1/completions", body.dump());
  }

  // The number of prompt tokens that the server counted; 0 if it does not say.
  int probe_one(int words) {
    const std::string text = PromptWriter::vocabulary(words);
    EventStream response = exchange(server_, with_prompt(text, 2), probe_seconds);
    // OpenAI's own service rejects fields that it does not know.
    if (response.status() == 400 && ignores_eos_ && response.body().find("ignore_eos") != std::string::npos) {
      ignores_eos_ = false;
      response = exchange(server_, with_prompt(text, 2), probe_seconds);
    }
    if (response.status() != 200 || !response.problem().empty()) {
      const std::string& why = response.problem().empty() ? response.body() : response.problem();
      fail(ErrorKind::network,
           fmt::format("the first request: status {}: {}", response.status(), printable(why.substr(0, 400))),
           {.why = {}, .next = response.status() == 401 ? "pass --api-key, or set INFERNO_API_KEY" : ""});
    }
    if (!response.usage_event()) return 0;
    const Json event = Json::parse(*response.usage_event(), nullptr, /*allow_exceptions=*/false);
    return event.is_object() && event["usage"].is_object() ? event["usage"].value("prompt_tokens", 0) : 0;
  }

  const ServeLoadOptions& options_;
  const ServerAddress& server_;
  std::string model_;
  PromptWriter prompts_;
  bool ignores_eos_ = true;
};

struct Level {
  std::string name;
  double value = 0.0;
  int max_streams = 0;
  std::vector<PlannedRequest> plan;
};

// Requests that do not fit the context would only count as failures.
void leave_out_long(std::vector<PlannedRequest>& plan, int context) {
  const std::size_t all = plan.size();
  std::erase_if(plan,
                [&](const PlannedRequest& one) { return one.input_tokens + one.output_tokens > context; });
  if (plan.size() == all) return;
  say(fmt::format("{} of {} requests of the trace exceed the context of {} tokens and are left out\n",
                  all - plan.size(), all, context));
  if (plan.empty()) fail(ErrorKind::invalid_request, "--trace: no request fits the server's context");
}

std::vector<Level> levels(const ServeLoadOptions& options, std::uint64_t seed, int context) {
  const int limit = options.limits_streams ? options.concurrency.front() : 0;
  std::vector<Level> out;
  if (!options.trace.empty()) {
    Level level;
    level.name = std::filesystem::path(options.trace).filename().string();
    level.max_streams = limit;
    level.plan =
        read_trace(options.trace, options.requests > 0 ? options.requests : 1 << 30, options.speedup);
    if (context > 0) leave_out_long(level.plan, context);
    const double span = level.plan.back().at;
    level.value = span > 0.0 ? static_cast<double>(level.plan.size()) / span : 1.0;
    out.push_back(std::move(level));
    return out;
  }
  for (const double rate : options.rates) {
    // Half a minute of arrivals tells more than a fixed number.
    const int count = options.requests > 0 ? options.requests : std::max(20, static_cast<int>(30.0 * rate));
    Level level = {.name = fmt::format("{:g} requests/s", rate),
                   .value = rate,
                   .max_streams = limit,
                   .plan = closed_loop(count, options.input_tokens, options.output_tokens)};
    spread_arrivals(level.plan, rate, seed + out.size());
    out.push_back(std::move(level));
  }
  if (!out.empty()) return out;
  for (const int streams : options.concurrency) {
    const int count = options.requests > 0 ? options.requests : std::max(8, 4 * streams);
    out.push_back({.name = fmt::format("concurrency {}", streams),
                   .value = static_cast<double>(streams),
                   .max_streams = streams,
                   .plan = closed_loop(count, options.input_tokens, options.output_tokens)});
  }
  return out;
}

std::string x_label(const ServeLoadOptions& options) {
  return options.rates.empty() && options.trace.empty() ? "concurrent requests" : "requests/s";
}

void write_plot(const ServeLoadOptions& options, const std::string& model,
                std::span<const LoadSummary> summaries) {
  const std::string title = fmt::format("{} · {} · {} tokens in, {} out · inferno {} {}", options.url, model,
                                        options.input_tokens, options.output_tokens, version, commit);
  write_file(options.plot, load::as_svg(title, x_label(options), summaries));
}

Json header_json(const ServeLoadOptions& options, const std::string& model, std::uint64_t seed) {
  return {{"backend", "openai"},
          {"endpoint_type", options.endpoint},
          {"url", options.url},
          {"model_id", model},
          {"date", fmt::format("{:%FT%TZ}", fmt::gmtime(std::time(nullptr)))},
          {"version", version},
          {"commit", commit},
          {"seed", seed},
          {"input_len", options.input_tokens},
          {"output_len", options.output_tokens},
          {"shared_prefix", options.shared_prefix},
          {"temperature", options.temperature}};
}

}  // namespace

void run_serve_load(const ServeLoadOptions& options) {
  const ServerAddress server(base_of(options.url), options.key);
  const ServedModel served =
      options.model.empty() ? served_model(server) : ServedModel{.name = options.model};
  // Prompts that were sent before would be found in the prefix cache, so that each test has its own.
  const std::uint64_t seed = options.seed.value_or(
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count()));
  std::vector<Level> plans = levels(options, seed, served.context);
  Sender sender(options, server, served.name, seed);
  sender.probe(served.context);
  if (!sender.ignores_eos()) {
    say("the server rejects ignore_eos: answers may be shorter than asked for\n");
  }

  const SignalWatcher watcher;
  std::uint64_t number = 0;
  std::vector<LoadSummary> summaries;
  bool was_interrupted = false;
  for (const Level& level : plans) {
    LoadResult result =
        run_load(server, {.plan = level.plan,
                          .max_streams = level.max_streams,
                          .request = [&](std::size_t i) { return sender.request(number + i, level.plan[i]); },
                          .stall_seconds = options.stall_seconds});
    number += level.plan.size();
    summaries.push_back(summarize(result.records));
    summaries.back().load = level.name;
    summaries.back().level = level.value;
    if (!options.json) fmt::print("{}\n", as_text(summaries.back()));
    std::fflush(stdout);
    was_interrupted = result.was_interrupted;
    if (was_interrupted) break;
  }

  if (options.json) {
    Json out = header_json(options, served.name, seed);
    for (const LoadSummary& summary : summaries) out["results"].push_back(as_json(summary));
    fmt::print("{}\n", out.dump(2, ' ', false, Json::error_handler_t::replace));
  } else if (summaries.size() > 1) {
    fmt::print("{}", as_table(summaries));
  }
  if (!options.plot.empty()) write_plot(options, served.name, summaries);
  if (was_interrupted) throw Exit{130};
  if (std::ranges::all_of(summaries, [](const LoadSummary& one) { return one.finished == 0; })) throw Exit{1};
}

}  // namespace inferno
