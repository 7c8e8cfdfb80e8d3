#include "service/answer.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/error.h"
#include "base/seconds.h"
#include "base/utf8.h"
#include "chat/json.h"

namespace inferno {
namespace {

bool is_empty(const ReplyPart& part) {
  const auto* content = std::get_if<ContentDelta>(&part);
  const auto* warning = std::get_if<ReplyWarning>(&part);
  return (content != nullptr && content->text.empty()) || (warning != nullptr && warning->text.empty());
}

bool is_warning(const ReplyPart& part) {
  return std::holds_alternative<ReplyWarning>(part);
}

// Rounded to microseconds and to hundredths of tokens/s: further digits are noise.
double milliseconds(double seconds) {
  return std::round(seconds * 1e6) / 1e3;
}

double per_second(double count, double seconds) {
  return count > 0.0 && seconds > 0.0 ? std::round(count / seconds * 1e2) / 1e2 : 0.0;
}

double milliseconds_each(double count, double seconds) {
  return count > 0.0 ? milliseconds(seconds / count) : 0.0;
}

Json token_json(std::string_view bytes, TokenId token, float logprob) {
  Json numbers = Json::array();
  for (const char byte : bytes) numbers.push_back(static_cast<unsigned char>(byte));
  std::string held(bytes);
  return {{"token", utf8::take_all(held, utf8::Replacement::per_character)},
          {"id", token},
          {"logprob", logprob},
          {"bytes", std::move(numbers)}};
}

Json token_json(std::string_view bytes, const Sampled& sampled, const Tokenizer& tokenizer) {
  Json token = token_json(bytes, sampled.token, sampled.logprob);
  token["top_logprobs"] = Json::array();
  for (const auto& [id, logprob] : sampled.alternatives) {
    token["top_logprobs"].push_back(token_json(tokenizer.bytes(id), id, logprob));
  }
  return token;
}

bool contains(const std::vector<TokenId>& tokens, TokenId token) {
  return std::ranges::find(tokens, token) != tokens.end();
}

}  // namespace

AnswerReader::AnswerReader(const Tokenizer& tokenizer, PreparedRequest& request, int choice)
    : tokenizer_(tokenizer),
      choice_(choice),
      detokenizer_(tokenizer, SpecialTokens::skip),
      matcher_(request.stops),
      stop_tokens_(request.generation.stop_tokens),
      stop_token_ids_(request.stop_token_ids),
      min_tokens_(static_cast<std::size_t>(request.generation.min_tokens)),
      notes_(request.notes) {
  if (!request.parsers.empty()) parser_ = std::move(request.parsers.at(static_cast<std::size_t>(choice)));
  // Whether the first token begins with a space depends on the prompt that it continues.
  if (!parser_) detokenizer_.follow(request.generation.prompt);
}

std::vector<ReplyPart> AnswerReader::take(const Event& event) {
  if (const auto* failed = std::get_if<Failed>(&event)) {
    is_over_ = true;
    failure_ = failed->message;
    failure_kind_ = failed->kind;
    return {};
  }
  if (const auto* finished = std::get_if<Finished>(&event)) {
    if (finished->choice != choice_) return {};
    std::vector<ReplyPart> parts = is_stopped() ? std::vector<ReplyPart>{} : last_parts(finished->reason);
    finish(*finished);
    return parts;
  }
  const auto& sampled = std::get<Sampled>(event);
  if (sampled.choice != choice_) return {};
  if (sampled.prompt) answer_.prompt = sampled.prompt;
  if (answer_.tokens.empty()) answer_.first_token_seconds = seconds_since(start_);
  if (is_stopped()) return {};  // sampled before the engine saw the cancellation
  answer_.tokens.push_back(sampled);
  std::vector<ReplyPart> parts = kept(parts_of(sampled.token));
  trace_.add_complete(answer_.content_tokens, answer_.tokens);
  answer_.reasoning_tokens = trace_.reasoning_tokens();
  return parts;
}

// Of a token that was just added to the answer.
std::vector<ReplyPart> AnswerReader::parts_of(TokenId token) {
  // A stop token of the request is no text. Those of the chat format may structure the reply (<|call|>).
  const bool ends =
      parser_ ? contains(stop_token_ids_, token) && parser_->is_text(token) : contains(stop_tokens_, token);
  if (ends) return {};
  const bool is_text = parser_ ? parser_->is_text(token) : !tokenizer_.is_special(token);
  if (is_text) trace_.push(answer_.tokens.size() - 1, tokenizer_.bytes(token));
  std::vector<ReplyPart> parts =
      parser_ ? parser_->push(token) : std::vector<ReplyPart>{ContentDelta{detokenizer_.push(token)}};
  trace_.settle(parts, parser_ ? parser_->held() : detokenizer_.held());
  return parts;
}

std::vector<ReplyPart> AnswerReader::last_parts(FinishReason reason) {
  if (answer_.tokens.empty()) return {};
  std::vector<ReplyPart> parts =
      parser_ ? parser_->finish() : std::vector<ReplyPart>{ContentDelta{detokenizer_.finish()}};
  // What the model could not finish because it was cut violates nothing.
  if (reason != FinishReason::stop) std::erase_if(parts, is_warning);
  trace_.settle(parts, 0);
  parts = kept(std::move(parts));
  release_held(parts);
  return parts;
}

// The content up to a stop string. As in vLLM, a stop string counts only if it ends after min_tokens.
std::string AnswerReader::shown(const std::string& content) {
  std::string text = answer_.tokens.size() <= min_tokens_ ? content : matcher_.push(content);
  trace_.show(text.size());
  return text;
}

// Adds the text that is held back because it may begin a stop string, to the answer and to `parts`.
void AnswerReader::release_held(std::vector<ReplyPart>& parts) {
  ContentDelta rest{matcher_.finish()};
  if (rest.text.empty()) return;
  answer_.text += rest.text;
  trace_.show(rest.text.size());
  parts.emplace_back(std::move(rest));
}

// Adds the parts to the answer and returns them, up to a stop string.
std::vector<ReplyPart> AnswerReader::kept(std::vector<ReplyPart> parts) {
  std::vector<ReplyPart> kept;
  for (ReplyPart& part : parts) {
    if (is_stopped()) break;
    std::visit(
        [&](auto& delta) {
          using Delta = std::decay_t<decltype(delta)>;
          if constexpr (std::is_same_v<Delta, ContentDelta>) {
            delta.text = shown(delta.text);
            answer_.text += delta.text;
          } else if constexpr (std::is_same_v<Delta, ReasoningDelta>) {
            release_held(kept);
            answer_.reasoning += delta.text;
          } else if constexpr (std::is_same_v<Delta, ToolCallDelta>) {
            release_held(kept);
            keep_call(delta);
          } else {
            // Each warning once: a model that breaks its protocol does so again and again.
            auto& known = answer_.warnings;
            if (std::ranges::find(known, delta.text) != known.end()) {
              delta.text.clear();
            } else {
              known.push_back(delta.text);
              answer_.is_malformed = true;
            }
          }
        },
        part);
    if (!is_empty(part)) kept.push_back(std::move(part));
  }
  return kept;
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
  call["function"]["arguments"].get_ref<std::string&>() += delta.arguments;
}

void AnswerReader::finish(const Finished& finished) {
  is_over_ = true;
  trace_.add_rest(answer_.content_tokens, answer_.tokens);
  answer_.reasoning_tokens = trace_.reasoning_tokens();
  answer_.finished = finished;
  answer_.total_seconds = seconds_since(start_);
  answer_.stopped_by = matcher_.matched();
  for (std::string& note : notes_ ? notes_->all() : std::vector<std::string>{}) {
    answer_.warnings.push_back(std::move(note));
  }
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

void require_success(const TextModel& model, const AnswerReader& reader) {
  if (reader.failure().empty()) return;
  const ErrorKind kind = reader.failure_kind().value_or(ErrorKind::corrupt);
  fail(model.engine().healthy() ? kind : ErrorKind::device, reader.failure());
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
  require_success(model, reader);
  return std::move(reader.answer());
}

Json logprobs_json(std::span<const ContentToken> tokens, const Tokenizer& tokenizer) {
  Json content = Json::array();
  for (const ContentToken& token : tokens) {
    content.push_back(token_json(token.bytes, token.sampled, tokenizer));
  }
  return content;
}

AnswerCounts counts_of(const Answer& answer) {
  return {.finished = answer.finished,
          .tokens = answer.tokens.size(),
          .first_token_seconds = answer.first_token_seconds,
          .total_seconds = answer.total_seconds};
}

Json timings_json(const AnswerCounts& counts) {
  const Finished& finished = counts.finished;
  const int read = finished.prompt_tokens - finished.cached_tokens;
  // The first token is part of the prompt's time.
  const double decoded = static_cast<double>(counts.tokens) - 1;
  return {{"cache_n", finished.cached_tokens},
          {"prompt_n", read},
          {"prompt_ms", milliseconds(finished.prompt_seconds)},
          {"prompt_per_token_ms", milliseconds_each(read, finished.prompt_seconds)},
          {"prompt_per_second", per_second(read, finished.prompt_seconds)},
          {"predicted_n", counts.tokens},
          {"predicted_ms", milliseconds(finished.decode_seconds)},
          {"predicted_per_token_ms", milliseconds_each(decoded, finished.decode_seconds)},
          {"predicted_per_second", per_second(decoded, finished.decode_seconds)},
          {"queue_ms", milliseconds(finished.queue_seconds)},
          {"first_token_ms", milliseconds(counts.first_token_seconds)},
          {"total_ms", milliseconds(counts.total_seconds)}};
}

Json json_of(const Answer& answer, const Tokenizer& tokenizer, bool with_logprobs) {
  Json json = {{"text", answer.text}};
  if (!answer.reasoning.empty()) json["reasoning"] = answer.reasoning;
  if (!answer.tool_calls.empty()) json["tool_calls"] = answer.tool_calls;
  json["prompt_tokens"] = answer.finished.prompt_tokens;
  json["cached_tokens"] = answer.finished.cached_tokens;
  json["completion_tokens"] = answer.completion_tokens();
  json["finish_reason"] = answer.finish_reason;
  if (!answer.stopped_by.empty()) json["stopped_by"] = answer.stopped_by;
  json["seed"] = answer.finished.seed;
  if (!answer.warnings.empty()) json["warnings"] = answer.warnings;
  if (with_logprobs) {
    Json content = Json::array();
    for (const Sampled& sampled : answer.tokens) {
      content.push_back(token_json(tokenizer.bytes(sampled.token), sampled, tokenizer));
    }
    json["logprobs"] = {{"content", std::move(content)}};
  }
  json["timings"] = timings_json(counts_of(answer));
  return json;
}

Json json_of(const Answer& answer, const TextModel& model, bool with_logprobs) {
  Json json = json_of(answer, model.tokenizer(), with_logprobs);
  json["timings"]["load_ms"] = milliseconds(model.load_seconds());
  json["model"] = model.name();
  return json;
}

}  // namespace inferno
