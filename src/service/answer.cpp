#include "service/answer.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/json.h"

namespace inferno {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

bool is_empty(const ReplyPart& part) {
  const auto* content = std::get_if<ContentDelta>(&part);
  const auto* warning = std::get_if<ReplyWarning>(&part);
  return (content != nullptr && content->text.empty()) || (warning != nullptr && warning->text.empty());
}

Json per_second(double count, double seconds) {
  return count > 0 && seconds > 0 ? Json(count / seconds) : Json(nullptr);
}

Json timings(const Answer& answer) {
  const Finished& finished = answer.finished;
  const int read = finished.prompt_tokens - finished.cached_tokens;
  // The first token is part of the prompt's time.
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

AnswerReader::AnswerReader(const Tokenizer& tokenizer, PreparedRequest& request)
    : parser_(std::move(request.parser)),
      detokenizer_(tokenizer, SpecialTokens::skip),
      matcher_(request.stops),
      stop_tokens_(request.generation.stop_tokens) {
  // Whether the first token begins with a space depends on the prompt that it continues.
  for (const TokenId token : request.generation.prompt) detokenizer_.push(token);
}

std::vector<ReplyPart> AnswerReader::take(const Event& event) {
  if (const auto* failed = std::get_if<Failed>(&event)) {
    is_over_ = true;
    failure_ = failed->message;
    return {};
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    std::vector<ReplyPart> parts = is_stopped() ? std::vector<ReplyPart>{} : last_parts();
    finish(*finished);
    return parts;
  }
  const auto& sampled = std::get<Sampled>(event);
  if (answer_.tokens.empty()) answer_.first_token_seconds = seconds_since(start_);
  if (is_stopped()) return {};  // sampled before the engine saw the cancellation
  answer_.tokens.push_back(sampled);
  return kept(parts_of(sampled.token));
}

std::vector<ReplyPart> AnswerReader::parts_of(TokenId token) {
  if (parser_) return parser_->push(token);
  const bool ends = std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end();
  if (ends) return {};
  return {ContentDelta{detokenizer_.push(token)}};
}

std::vector<ReplyPart> AnswerReader::last_parts() {
  std::vector<ReplyPart> parts =
      parser_ ? parser_->finish() : std::vector<ReplyPart>{ContentDelta{detokenizer_.finish()}};
  parts = kept(std::move(parts));
  ContentDelta rest{matcher_.finish()};
  answer_.text += rest.text;
  if (!rest.text.empty()) parts.emplace_back(std::move(rest));
  return parts;
}

// Adds the parts to the answer and returns them, with content only up to a stop string.
std::vector<ReplyPart> AnswerReader::kept(std::vector<ReplyPart> parts) {
  for (ReplyPart& part : parts) {
    std::visit(
        [&](auto& delta) {
          using Delta = std::decay_t<decltype(delta)>;
          if constexpr (std::is_same_v<Delta, ContentDelta>) {
            delta.text = matcher_.push(delta.text);
            answer_.text += delta.text;
          } else if constexpr (std::is_same_v<Delta, ReasoningDelta>) {
            answer_.reasoning += delta.text;
          } else if constexpr (std::is_same_v<Delta, ToolCallDelta>) {
            keep_call(delta);
          } else {
            // Each warning once: a model that breaks its protocol does so again and again.
            auto& known = answer_.warnings;
            if (std::ranges::find(known, delta.text) != known.end()) {
              delta.text.clear();
            } else {
              known.push_back(delta.text);
            }
          }
        },
        part);
  }
  std::erase_if(parts, is_empty);
  return parts;
}

void AnswerReader::keep_call(const ToolCallDelta& delta) {
  const auto index = static_cast<std::size_t>(delta.index);
  while (answer_.tool_calls.size() <= index) {
    answer_.tool_calls.push_back(
        {{"id", ""}, {"type", "function"}, {"function", {{"name", ""}, {"arguments", ""}}}});
  }
  Json& call = answer_.tool_calls[index];
  if (!delta.id.empty()) call["id"] = delta.id;
  if (!delta.name.empty()) call["function"]["name"] = delta.name;
  call["function"]["arguments"] = call["function"]["arguments"].get<std::string>() + delta.arguments;
}

void AnswerReader::finish(const Finished& finished) {
  is_over_ = true;
  answer_.finished = finished;
  answer_.total_seconds = seconds_since(start_);
  answer_.stopped_by = matcher_.matched();
  if (is_stopped()) {
    answer_.finish_reason = "stop";
    return;
  }
  switch (finished.reason) {
    case FinishReason::stop:
      answer_.finish_reason = answer_.tool_calls.empty() ? "stop" : "tool_calls";
      break;
    case FinishReason::length: answer_.finish_reason = "length"; break;
    case FinishReason::cancelled: answer_.finish_reason = "cancelled"; break;
  }
}

Answer write_answer(const TextModel& model, PreparedRequest request, const IsCancelled& is_cancelled,
                    const ShowPart& show) {
  constexpr auto timeout = std::chrono::milliseconds(50);  // between checks for cancellation
  AnswerReader reader(model.tokenizer(), request);
  const auto stream = model.engine().submit(std::move(request.generation));
  bool is_read = true;
  while (!reader.is_over()) {
    if (!is_read || is_cancelled() || reader.is_stopped()) stream->cancel();
    const auto event = stream->next(timeout);
    if (!event) continue;
    for (const ReplyPart& part : reader.take(*event)) is_read = is_read && show(part);
  }
  if (!reader.failure().empty()) {
    fail(model.engine().healthy() ? ErrorKind::corrupt : ErrorKind::device, reader.failure());
  }
  return std::move(reader.answer());
}

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
