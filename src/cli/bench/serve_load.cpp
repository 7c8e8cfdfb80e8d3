#include "cli/bench/serve_load.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "cli/bench/load/http_target.h"
#include "cli/bench/load/load_client.h"
#include "cli/bench/load/load_plan.h"
#include "cli/terminal/streams.h"

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
      : options_(options),
        server_(server),
        model_(std::move(model)),
        prompts_(seed, options.load.shared_prefix) {}

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
    body["temperature"] = options_.load.temperature;
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

}  // namespace

void run_serve_load(const ServeLoadOptions& options) {
  const ServerAddress server(base_of(options.url), options.key);
  const ServedModel served =
      options.model.empty() ? served_model(server) : ServedModel{.name = options.model};
  const std::uint64_t seed = seed_of(options.load);
  std::vector<Level> plans = levels(options.load, seed);
  if (served.context > 0 && !options.load.trace.empty()) leave_out_long(plans, served.context);
  Sender sender(options, server, served.name, seed);
  sender.probe(served.context);
  if (!sender.ignores_eos()) {
    say("the server rejects ignore_eos: answers may be shorter than asked for\n");
  }
  const auto target = [&](const Level& level, std::uint64_t first_number) {
    const auto request = [&sender, &level, first_number](std::size_t i) {
      return sender.request(first_number + i, level.plan[i]);
    };
    return make_server_target(server, {.request = request, .stall_seconds = options.stall_seconds});
  };
  run_levels(options.load, plans, seed,
             {.title = fmt::format("{} · {}", options.url, served.name),
              .json = {{"backend", "openai"},
                       {"endpoint_type", options.endpoint},
                       {"url", options.url},
                       {"model_id", served.name}},
              .target = target});
}

}  // namespace inferno
