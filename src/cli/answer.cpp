#include "cli/answer.h"

#include <algorithm>
#include <type_traits>

#include "base/error.h"

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

}  // namespace

AnswerReader::AnswerReader(const Tokenizer& tokenizer, PreparedRequest& request)
    : parser_(std::move(request.parser)),
      detokenizer_(tokenizer, SpecialTokens::skip),
      matcher_(request.stops),
      stop_tokens_(request.generation.stop_tokens) {
  // The text continues the prompt: whether its first token begins with a space depends on that.
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
  if (is_stopped()) return {};  // made before the engine saw that it should end
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

// Adds the parts to the answer; content only as far as stop strings allow.
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
            // Once each: a model that breaks its protocol does so again and again.
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

Answer write_answer(const TextModel& model, PreparedRequest request, const SignalWatcher& interrupt,
                    const ShowPart& show) {
  constexpr auto patience = std::chrono::milliseconds(50);  // how late an interrupt may be seen
  AnswerReader reader(model.tokenizer(), request);
  const auto stream = model.engine().submit(std::move(request.generation));
  bool is_wanted = true;
  while (!reader.is_over()) {
    if (!is_wanted || interrupt.received() != 0 || reader.is_stopped()) stream->cancel();
    const auto event = stream->next(patience);
    if (!event) continue;
    for (const ReplyPart& part : reader.take(*event)) is_wanted = is_wanted && show(part);
  }
  if (!reader.failure().empty()) {
    fail(model.engine().healthy() ? ErrorKind::corrupt : ErrorKind::device, reader.failure());
  }
  return std::move(reader.answer());
}

}  // namespace inferno
