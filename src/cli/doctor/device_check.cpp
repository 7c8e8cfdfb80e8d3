#include "cli/doctor/device_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "checkpoint/open_checkpoint.h"
#include "model/load.h"
#include "model/runner.h"

namespace inferno::doctor {
namespace {

using Json = nlohmann::ordered_json;

struct Expected {
  std::vector<TokenId> prompt, answer;
};

Expected expected_in(const std::filesystem::path& model) {
  std::ifstream file(model / "self_test.json");
  const Json json = Json::parse(file);
  return {json.at("ids").get<std::vector<TokenId>>(), json.at("greedy").get<std::vector<TokenId>>()};
}

std::vector<TokenId> greedy(Runner& runner, const Expected& expected) {
  std::vector<TokenId> answer;
  std::vector<float> logits = runner.feed(expected.prompt, 1);
  while (true) {
    answer.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
    if (answer.size() == expected.answer.size()) return answer;
    logits = runner.feed({&answer.back(), 1}, 1);
  }
}

Finding run(const DeviceOptions& options, const Environment& environment) {
  const std::filesystem::path model = Catalogue(catalogue_settings(environment)).builtin().path;
  const Expected expected = expected_in(model);
  const auto checkpoint = open_checkpoint(model);
  const auto backend = open_device(options);
  const int context = static_cast<int>(expected.prompt.size() + expected.answer.size());
  const LoadedModel loaded = load_model(*checkpoint, *backend, {.max_logit_rows = 1, .context = context});
  Runner runner(*loaded.decoder, *backend, context);
  const auto start = std::chrono::steady_clock::now();
  const std::vector<TokenId> answer = greedy(runner, expected);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  const auto equal = std::ranges::mismatch(answer, expected.answer).in1 - answer.begin();
  const DeviceInfo info = backend->info();
  const std::string where = fmt::format("{} ({})", info.name, info.kernels);
  Finding finding = {.check = "self-test",
                     .facts = Json{{"device", info.name},
                                   {"kernels", info.kernels},
                                   {"tokens", answer.size()},
                                   {"equal_tokens", equal},
                                   {"milliseconds", took.count()}}
                                  .dump()};
  if (static_cast<std::size_t>(equal) == answer.size()) {
    finding.summary = fmt::format("all {} tokens of the built-in model match the reference, on {}, {:.0f} ms",
                                  answer.size(), where, took.count());
  } else {
    finding.verdict = Verdict::fail;
    finding.summary = fmt::format("the built-in model differs from the reference at token {} of {}, on {}",
                                  equal + 1, answer.size(), where);
    finding.next =
        "try --device cpu, then another machine; report this with the output of inferno doctor --json";
  }
  return finding;
}

}  // namespace

Finding check_device(const DeviceOptions& device, const Environment& environment) {
  try {
    return run(device, environment);
  } catch (const std::exception& error) {
    return {.check = "self-test", .verdict = Verdict::fail, .summary = error.what()};
  }
}

}  // namespace inferno::doctor
