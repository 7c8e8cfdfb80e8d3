#include "server/openai/responses_stream.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <variant>

#include "server/fields/fields.h"
#include "server/openai/common.h"
#include "server/openai/responses_items.h"

namespace inferno::server {
namespace {

using Events = std::vector<std::pair<std::string, Json>>;

Json usage_of(const Answer& answer) {
  const auto output = static_cast<int>(answer.tokens.size());
  return {
      {"input_tokens", answer.finished.prompt_tokens},
      {"input_tokens_details", {{"cached_tokens", answer.finished.cached_tokens}, {"cache_write_tokens", 0}}},
      {"output_tokens", output},
      {"output_tokens_details", {{"reasoning_tokens", answer.reasoning_tokens}}},
      {"total_tokens", answer.finished.prompt_tokens + output}};
}

// The state of one response. Events are collected and taken by what sends them: the writer, or the call if
// it fails.
class ResponseState {
 public:
  explicit ResponseState(ResponseOptions options)
      : options_(std::move(options)),
        items_(options_.response.at("id").get<std::string>().substr(sizeof("resp_") - 1),
               options_.streams ? [this](Json event) { add_event(std::move(event)); } : OutputItems::Emit()) {
  }
  ~ResponseState() = default;
  ResponseState(const ResponseState&) = delete;
  ResponseState& operator=(const ResponseState&) = delete;

  void add(const ReplyPart& part, const Answer& answer) {
    begin();
    if (const auto* content = std::get_if<ContentDelta>(&part)) {
      text_bytes_ += content->text.size();
      items_.add_text(content->text, new_logprobs(answer));
      return;
    }
    add_late_logprobs(answer);
    if (const auto* reasoning = std::get_if<ReasoningDelta>(&part)) {
      if (options_.include_reasoning) items_.add_reasoning(reasoning->text);
    } else if (const auto* call = std::get_if<ToolCallDelta>(&part)) {
      if (!options_.single_call || call->index == 0) items_.add_call(*call);
    }
  }

  // The complete response.
  Json finish(Call& call, const std::vector<Answer>& results) {
    begin();
    const Answer& answer = results.front();
    add_late_logprobs(answer);
    // A cancelled answer ran into the server's time limit.
    const bool was_cut = answer.finish_reason == "length" || answer.finish_reason == "cancelled";
    items_.finish(was_cut);
    if (options_.single_call && answer.tool_calls.size() > 1) {
      call.warn(
          fmt::format("only the first of {} tool calls is returned because parallel_tool_calls is false",
                      answer.tool_calls.size()));
    }
    Json response = options_.response;
    response["status"] = was_cut ? "incomplete" : "completed";
    if (was_cut) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
    if (!was_cut) response["completed_at"] = unix_time();
    response["output"] = items_.items();
    response["usage"] = usage_of(answer);
    if (Json timings = timings_of(results, 1, call); !timings.is_null()) response["timings"] = timings;
    if (Json inferno = inferno_of(results, 1, call); !inferno.is_null()) response["inferno"] = inferno;
    const std::string type = was_cut ? "response.incomplete" : "response.completed";
    add_event({{"type", type}, {"response", response}});
    return response;
  }

  Events fail(const ApiError& error) {
    begin();
    Json response = options_.response;
    response["status"] = "failed";
    response["error"] = {{"code", error.status == 429 ? "rate_limit_exceeded" : "server_error"},
                         {"message", error.message}};
    response["output"] = items_.items();
    add_event({{"type", "response.failed"}, {"response", std::move(response)}});
    return take_events();
  }

  Events take_events() { return std::exchange(events_, {}); }

 private:
  // The first two events.
  void begin() {
    if (std::exchange(has_begun_, true)) return;
    add_event({{"type", "response.created"}, {"response", options_.response}});
    add_event({{"type", "response.in_progress"}, {"response", options_.response}});
  }

  void add_event(Json event) {
    if (!options_.streams) return;
    event["sequence_number"] = sequence_++;
    std::string type = event.at("type");
    events_.emplace_back(std::move(type), std::move(event));
  }

  // Of the tokens that begin in the text so far and were not sent.
  Json new_logprobs(const Answer& answer) {
    if (!options_.logprobs) return Json::array();
    const std::span all(answer.content_tokens);
    const std::size_t first = next_token_;
    while (next_token_ < all.size() && token_bytes_ < text_bytes_) {
      token_bytes_ += all[next_token_++].bytes.size();
    }
    return logprobs_json(all.subspan(first, next_token_ - first), *options_.tokenizer);
  }

  // A token is known to be content only when all of its text is: one may be left when a message ends.
  void add_late_logprobs(const Answer& answer) {
    Json late = new_logprobs(answer);
    if (!late.empty()) items_.add_text("", late);
  }

  ResponseOptions options_;
  OutputItems items_;
  Events events_;
  int sequence_ = 0;
  bool has_begun_ = false;
  std::size_t text_bytes_ = 0;                    // of all texts so far
  std::size_t next_token_ = 0, token_bytes_ = 0;  // tokens whose log probabilities were sent
};

class ResponseWriter : public AnswerWriter {
 public:
  ResponseWriter(std::shared_ptr<ResponseState> state, bool streams)
      : state_(std::move(state)), streams_(streams) {}

  void write(Call& call, std::size_t /*answer*/, const std::vector<ReplyPart>& parts,
             AnswerReader& reader) override {
    for (const ReplyPart& part : parts) state_->add(part, reader.answer());
    send(call);
  }

  void finish(Call&, std::size_t, Answer&) override {}  // there is one answer

  void finish_all(Call& call, std::vector<Answer>& results) override {
    Json response = state_->finish(call, results);
    if (!streams_) return call.respond(200, response);
    send(call);
    call.end_stream();
  }

 private:
  void send(Call& call) {
    for (const auto& [name, data] : state_->take_events()) call.event(name, data);
  }

  std::shared_ptr<ResponseState> state_;
  bool streams_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_response_writer(ResponseOptions options, Call& call) {
  const bool streams = options.streams;
  auto state = std::make_shared<ResponseState>(std::move(options));
  if (streams) {
    call.set_failure_events([state](const ApiError& error) { return state->fail(error); });
  }
  return std::make_unique<ResponseWriter>(std::move(state), streams);
}

}  // namespace inferno::server
