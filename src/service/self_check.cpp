#include "service/self_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include "base/file.h"
#include "chat/json.h"
#include "checkpoint/open_checkpoint.h"
#include "model/load.h"
#include "model/runner.h"

namespace inferno {
namespace {

struct Expected {
  std::vector<TokenId> prompt, answer;
};

Expected expected_in(const std::filesystem::path& model) {
  constexpr std::uint64_t max_bytes = 1u << 20;
  const std::string file = (model / "self_test.json").string();
  const Json json = parse_json(read_file(file, max_bytes), file);
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

}  // namespace

std::string SelfTest::summary() const {
  const std::string where = fmt::format("{} ({})", device.name, device.kernels);
  if (has_passed()) {
    return fmt::format("all {} tokens of the built-in model match the reference, on {}, {:.0f} ms", tokens,
                       where, milliseconds);
  }
  return fmt::format("the built-in model differs from the reference at token {} of {}, on {}",
                     equal_tokens + 1, tokens, where);
}

SelfTest run_self_test(const std::filesystem::path& model, const DeviceOptions& options) {
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
  return {.device = backend->info(),
          .tokens = answer.size(),
          .equal_tokens = static_cast<std::size_t>(equal),
          .milliseconds = took.count()};
}

}  // namespace inferno
