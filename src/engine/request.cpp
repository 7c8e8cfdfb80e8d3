#include "engine/request.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <span>
#include <string_view>

#include "base/error.h"

namespace inferno {
namespace {

void check_number(std::string_view name, double value, double min, double max) {
  if (value >= min && value <= max) return;  // false for NaN
  fail(ErrorKind::invalid_request, fmt::format("{} {}: expected {} to {}", name, value, min, max));
}

// A number in (0, 1].
void check_share(std::string_view name, double value) {
  if (value > 0.0 && value <= 1.0) return;
  fail(ErrorKind::invalid_request, fmt::format("{} {}: expected more than 0 and at most 1", name, value));
}

void check_length(std::string_view name, std::size_t count, int max) {
  if (count <= static_cast<std::size_t>(max)) return;
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected at most {} entries, found {}", name, max, count));
}

void check_token(std::string_view name, TokenId token, int vocab) {
  if (token >= 0 && token < vocab) return;
  fail(ErrorKind::invalid_request, fmt::format("{} token {}: expected 0 to {}", name, token, vocab - 1));
}

void check_tokens(std::string_view name, std::span<const TokenId> tokens, int vocab) {
  for (const TokenId token : tokens) check_token(name, token, vocab);
}

void check_sampling(const Sampling& sampling, const RequestLimits& limits) {
  check_number("temperature", sampling.temperature, 0.0, 100.0);
  check_number("top_k", sampling.top_k, 0.0, std::numeric_limits<int>::max());
  check_share("top_p", sampling.top_p);
  check_number("min_p", sampling.min_p, 0.0, 1.0);
  check_share("typical_p", sampling.typical_p);
  check_number("repetition_penalty", sampling.repetition_penalty, 0.01, 100.0);
  check_number("presence_penalty", sampling.presence_penalty, -100.0, 100.0);
  check_number("frequency_penalty", sampling.frequency_penalty, -100.0, 100.0);
  check_length("logit_bias", sampling.logit_bias.size(), limits.max_listed);
  check_length("banned", sampling.banned.size(), limits.max_listed);
  check_length("allowed", sampling.allowed.size(), limits.max_listed);
  for (const auto& [token, bias] : sampling.logit_bias) {
    check_token("logit_bias", token, limits.vocab);
    check_number("logit_bias", bias, -1e4, 1e4);
  }
  check_tokens("banned", sampling.banned, limits.vocab);
  check_tokens("allowed", sampling.allowed, limits.vocab);
  if (sampling.logprobs) check_number("logprobs", *sampling.logprobs, 0.0, limits.max_logprobs);
}

std::string too_long(std::size_t prompt_tokens, bool is_exact, int context) {
  return fmt::format("a prompt of {}{} tokens leaves no room for an answer in a context of {}",
                     is_exact ? "" : "at least ", prompt_tokens, context);
}

Advice shorter_prompt(const RequestLimits& limits) {
  if (limits.context >= limits.model_context) {
    return {.why = {}, .next = "shorten the prompt: this is the model's maximum context"};
  }
  return {
      .why = {},
      .next = fmt::format("shorten the prompt, or start with a longer context (the model's maximum is {}) "
                          "or more memory for the cache",
                          limits.model_context)};
}

}  // namespace

PromptTooLong::PromptTooLong(std::size_t prompt_tokens, bool is_exact, const RequestLimits& limits)
    : Error(ErrorKind::invalid_request, too_long(prompt_tokens, is_exact, limits.context),
            shorter_prompt(limits)),
      prompt_tokens_(prompt_tokens),
      is_exact_(is_exact),
      context_(limits.context) {}

void check_request(const GenerationRequest& request, const RequestLimits& limits) {
  if (request.prompt.empty()) fail(ErrorKind::invalid_request, "the prompt has no tokens");
  if (request.prompt.size() >= static_cast<std::size_t>(limits.context)) {
    throw PromptTooLong(request.prompt.size(), /*is_exact=*/true, limits);
  }
  check_tokens("prompt", request.prompt, limits.vocab);
  check_number("max_tokens", request.max_tokens, 0.0, std::numeric_limits<int>::max());
  check_number("min_tokens", request.min_tokens, 0.0, std::numeric_limits<int>::max());
  check_number("choices", request.choices, 1.0, limits.max_choices);
  check_length("stop_tokens", request.stop_tokens.size(), limits.max_listed);
  if (request.prompt_logprobs) {
    check_number("prompt_logprobs", *request.prompt_logprobs, 0.0, limits.max_logprobs);
  }
  check_sampling(request.sampling, limits);
}

}  // namespace inferno
