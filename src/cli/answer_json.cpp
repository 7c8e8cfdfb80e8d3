// An answer as JSON, under the names that llama-server and OpenAI's API use.
#include "base/utf8.h"
#include "cli/answer.h"

namespace inferno {
namespace {

Json per_second(double count, double seconds) {
  return count > 0 && seconds > 0 ? Json(count / seconds) : Json(nullptr);
}

Json timings(const Answer& answer) {
  const Finished& finished = answer.finished;
  const int read = finished.prompt_tokens - finished.cached_tokens;
  // The first token belongs to the prompt's time.
  const double decoded = static_cast<double>(answer.tokens.size()) - 1;
  return {{"cache_n", finished.cached_tokens},
          {"prompt_n", read},
          {"prompt_ms", finished.prompt_seconds * 1e3},
          {"prompt_per_second", per_second(read, finished.prompt_seconds)},
          {"predicted_n", answer.tokens.size()},
          {"predicted_ms", finished.decode_seconds * 1e3},
          {"predicted_per_second", per_second(decoded, finished.decode_seconds)},
          {"queue_ms", finished.queue_seconds * 1e3},
          {"first_token_ms", answer.first_token_seconds * 1e3},
          {"total_ms", answer.total_seconds * 1e3}};
}

Json token_json(const Tokenizer& tokenizer, TokenId token, float logprob) {
  const std::string_view bytes = tokenizer.bytes(token);
  Json numbers = Json::array();
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  std::string held(bytes);
  return {{"token", utf8::take_all(held, utf8::Replacement::per_character)},
          {"id", token},
          {"logprob", logprob},
          {"bytes", std::move(numbers)}};
}

Json logprobs(const Answer& answer, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const Sampled& sampled : answer.tokens) {
    Json token = token_json(tokenizer, sampled.token, sampled.logprob);
    token["top_logprobs"] = Json::array();
    for (const auto& [id, logprob] : sampled.alternatives) {
      token["top_logprobs"].push_back(token_json(tokenizer, id, logprob));
    }
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}};
}

}  // namespace

Json json_of(const Answer& answer, const Tokenizer& tokenizer, bool with_logprobs) {
  Json json = {{"text", answer.text}};
  if (!answer.reasoning.empty()) json["reasoning"] = answer.reasoning;
  if (!answer.tool_calls.empty()) json["tool_calls"] = answer.tool_calls;
  json["prompt_tokens"] = answer.finished.prompt_tokens;
  json["cached_tokens"] = answer.finished.cached_tokens;
  json["completion_tokens"] = answer.tokens.size();
  json["finish_reason"] = answer.finish_reason;
  if (!answer.stopped_by.empty()) json["stopped_by"] = answer.stopped_by;
  json["seed"] = answer.finished.seed;
  if (!answer.warnings.empty()) json["warnings"] = answer.warnings;
  if (with_logprobs) json["logprobs"] = logprobs(answer, tokenizer);
  json["timings"] = timings(answer);
  return json;
}

}  // namespace inferno
