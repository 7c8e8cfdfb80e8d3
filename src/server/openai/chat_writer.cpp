#include "server/openai/chat_writer.h"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <variant>

namespace inferno::server {
namespace {

class ChatWriter : public ChoiceWriter {
 public:
  ChatWriter(ChatOutput output, ResponseFrame frame, const Tokenizer& tokenizer)
      : ChoiceWriter(frame, static_cast<std::size_t>(frame.choices), tokenizer),
        output_(output),
        states_(static_cast<std::size_t>(frame.choices)) {}

  void write(Call& call, std::size_t answer, const std::vector<ReplyPart>& parts,
             AnswerReader& reader) override {
    // The chunk with the role has no token.
    if (streams()) begin(call, answer);
    chunks_.count(answer, reader.answer().tokens.size());
    for (const ReplyPart& part : parts) {
      std::visit([&](const auto& delta) { take(call, answer, delta, reader.answer()); }, part);
    }
  }

  void finish(Call& call, std::size_t answer, Answer& result) override {
    close_reasoning(call, answer, result);
    if (output_.single_call) keep_first_call(call, result);
    if (!streams()) return;
    chunks_.count(answer, result.tokens.size());
    begin(call, answer);
    Json choice = choice_of(answer, Json::object(), finish_reason_of(result));
    // A token is known to be content only when all of its text is: one may be left.
    if (states_[answer].logprobs_sent < result.content_tokens.size())
      choice["logprobs"] = new_logprobs(answer, result);
    chunks_.send_last(call, std::move(choice));
  }

 private:
  struct State {
    bool has_begun = false, is_reasoning = false;
    std::size_t logprobs_sent = 0;  // tokens
    std::string content;            // where reasoning is part of it
  };

  Json whole_choice(std::size_t answer, const Answer& result) override {
    return {{"index", answer},
            {"message", message_of(answer, result)},
            {"logprobs", logprobs_of(result, 0)},
            {"finish_reason", finish_reason_of(result)}};
  }

  bool mixes() const { return output_.reasoning_format == ReasoningFormat::none; }

  void take(Call& call, std::size_t answer, const ContentDelta& delta, const Answer& so_far) {
    close_reasoning(call, answer, so_far);
    send_content(call, answer, delta.text, so_far);
  }

  void take(Call& call, std::size_t answer, const ReasoningDelta& delta, const Answer& so_far) {
    if (!output_.include_reasoning) return;
    if (!mixes()) {
      if (streams()) send(call, answer, reasoning_json(delta.text));
      return;
    }
    State& state = states_[answer];
    send_content(call, answer, state.is_reasoning ? delta.text : "<think>" + delta.text, so_far);
    state.is_reasoning = true;
  }

  void take(Call& call, std::size_t answer, const ToolCallDelta& delta, const Answer& so_far) {
    close_reasoning(call, answer, so_far);
    if (!streams() || (output_.single_call && delta.index > 0)) return;
    Json function = Json::object();
    if (!delta.name.empty()) function["name"] = delta.name;
    function["arguments"] = delta.arguments;
    Json piece = {{"index", delta.index}};
    if (!delta.id.empty()) {
      piece["id"] = delta.id;
      piece["type"] = "function";
    }
    piece["function"] = std::move(function);
    send(call, answer, {{"tool_calls", Json::array({std::move(piece)})}});
  }

  // In the response's warnings.
  void take(Call&, std::size_t, const ReplyWarning&, const Answer&) {}

  void close_reasoning(Call& call, std::size_t answer, const Answer& so_far) {
    if (!states_[answer].is_reasoning) return;
    states_[answer].is_reasoning = false;
    send_content(call, answer, "</think>\n\n", so_far);
  }

  void send_content(Call& call, std::size_t answer, const std::string& text, const Answer& so_far) {
    if (mixes()) states_[answer].content += text;
    if (!streams()) return;
    Json choice = choice_of(answer, {{"content", text}}, nullptr);
    choice["logprobs"] = new_logprobs(answer, so_far);
    chunks_.send(call, choice);
  }

  void send(Call& call, std::size_t answer, Json delta) {
    chunks_.send(call, choice_of(answer, std::move(delta), nullptr));
  }

  void begin(Call& call, std::size_t answer) {
    if (states_[answer].has_begun) return;
    states_[answer].has_begun = true;
    send(call, answer, {{"role", "assistant"}, {"content", ""}, {"refusal", nullptr}});
  }

  Json choice_of(std::size_t answer, Json delta, Json finish_reason) const {
    return {{"index", answer},
            {"delta", std::move(delta)},
            {"logprobs", nullptr},
            {"finish_reason", std::move(finish_reason)}};
  }

  Json reasoning_json(const std::string& text) const {
    Json fields = Json::object();
    if (output_.reasoning_format != ReasoningFormat::reasoning_content) fields["reasoning"] = text;
    if (output_.reasoning_format != ReasoningFormat::reasoning) fields["reasoning_content"] = text;
    return fields;
  }

  Json message_of(std::size_t answer, const Answer& result) const {
    const std::string& text = mixes() ? states_[answer].content : result.text;
    const bool only_calls = text.empty() && !result.tool_calls.empty();
    Json message = {{"role", "assistant"},
                    {"content", only_calls ? Json(nullptr) : Json(text)},
                    {"refusal", nullptr},
                    {"annotations", Json::array()}};
    const bool has_reasoning = output_.include_reasoning && !mixes() && !result.reasoning.empty();
    if (has_reasoning) message.update(reasoning_json(result.reasoning));
    if (!result.tool_calls.empty()) message["tool_calls"] = result.tool_calls;
    return message;
  }

  void keep_first_call(Call& call, Answer& result) const {
    if (result.tool_calls.size() <= 1) return;
    call.warn(fmt::format("only the first of {} tool calls is returned because parallel_tool_calls is false",
                          result.tool_calls.size()));
    result.tool_calls.erase(result.tool_calls.begin() + 1, result.tool_calls.end());
  }

  // The tokens of the content from `from` on.
  Json logprobs_of(const Answer& answer, std::size_t from) const {
    if (!output_.logprobs) return nullptr;
    const auto tokens = std::span(answer.content_tokens).subspan(from);
    return {{"content", logprobs_json(tokens, tokenizer_)}, {"refusal", nullptr}};
  }

  Json new_logprobs(std::size_t answer, const Answer& so_far) {
    const std::size_t sent = std::exchange(states_[answer].logprobs_sent, so_far.content_tokens.size());
    return logprobs_of(so_far, sent);
  }

  ChatOutput output_;
  std::vector<State> states_;
};

}  // namespace

std::unique_ptr<AnswerWriter> make_chat_writer(ChatOutput output, ResponseFrame frame,
                                               const Tokenizer& tokenizer) {
  return std::make_unique<ChatWriter>(output, std::move(frame), tokenizer);
}

}  // namespace inferno::server
