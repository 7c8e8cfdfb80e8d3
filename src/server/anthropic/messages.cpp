// POST /v1/messages and /v1/messages/count_tokens: Anthropic's Messages API.
#include <fmt/format.h>

#include <utility>

#include "server/anthropic/messages_input.h"
#include "server/anthropic/messages_stream.h"
#include "server/doors.h"
#include "server/fields/fields.h"
#include "server/generation.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

class MessagesWriter : public AnswerWriter {
 public:
  MessagesWriter(MessageEvents::Setup setup, bool streams) : events_(std::move(setup)), streams_(streams) {}

  void write(Call& call, std::size_t, const std::vector<ReplyPart>& parts, AnswerReader&) override {
    send(call, events_.add(parts));
  }
  void finish(Call& call, std::size_t, Answer& result) override { send(call, events_.finish(result)); }
  void finish_all(Call& call, std::vector<Answer>&) override {
    if (streams_) {
      call.end_stream();
    } else {
      call.respond(200, sum_.message());
    }
  }

 private:
  void send(Call& call, const std::vector<Json>& events) {
    for (const Json& event : events) {
      if (streams_) {
        call.event(event.at("type").get_ref<const std::string&>(), event);
      } else {
        sum_.add(event);
      }
    }
  }

  MessageEvents events_;
  MessageSum sum_;
  bool streams_;
};

// The result of `work` with the conversation as it is or, if the model's template refuses that, with its
// later instructions in messages of the user.
template <class Work>
auto with_accepted(const MessagesRequest& request, const Work& work) {
  try {
    return work(request.text);
  } catch (const ApiError& error) {
    TextRequest other = request.text;
    const bool is_refused = error.status == 400 && error.code != "context_length_exceeded";
    if (!is_refused || !inline_instructions(other.messages)) throw;
    return work(other);
  }
}

PreparedRequest prepare_messages(const TextModel& model, const TextRequest& request, Call& call) {
  try {
    return prepare(model, request, call, "messages");
  } catch (ApiError& error) {
    if (error.code == "context_length_exceeded") {
      // Agents look for Anthropic's own words to know that they must summarize the conversation.
      error.message = fmt::format("prompt is too long: {} tokens > {} maximum: {}", error.prompt_tokens,
                                  error.context, error.message);
    }
    throw;
  }
}

}  // namespace

void messages(SharedCall call) {
  const auto model = call->shared().model();
  const MessagesRequest request = read_messages(call->take_body(), MessagesRoute::answer, *model, *call);
  PreparedRequest prepared =
      with_accepted(request, [&](const TextRequest& text) { return prepare_messages(*model, text, *call); });
  MessageEvents::Setup setup = {.id = random_id("msg_"),
                                .model = request.model,
                                .thinking = request.thinking,
                                .prompt_tokens = static_cast<int>(prepared.generation.prompt.size()),
                                .single_call = request.single_call};
  GenerationPlan plan;
  plan.prompts.push_back(std::move(prepared));
  plan.writer = std::make_unique<MessagesWriter>(std::move(setup), request.streams);
  plan.streams = request.streams;
  start_generation(std::move(call), model, std::move(plan));
}

void count_tokens(SharedCall call) {
  const auto model = call->shared().model();
  const MessagesRequest request =
      read_messages(call->take_body(), MessagesRoute::count_tokens, *model, *call);
  // Also of a conversation that does not fit: clients ask in order to know how much too long it is.
  const std::vector<TokenId> tokens = with_accepted(
      request, [&](const TextRequest& text) { return prompt_tokens(*model, text, "messages"); });
  call->respond(200, {{"input_tokens", tokens.size()}});
}

}  // namespace inferno::server
