// POST /v1/chat/completions
#include <utility>

#include "server/doors.h"
#include "server/fields/fields.h"
#include "server/generation.h"
#include "server/openai/chat_request.h"
#include "server/openai/chat_writer.h"
#include "server/shared.h"

namespace inferno::server {

void chat_completions(SharedCall call) {
  const auto model = call->shared().model();
  ChatRequest chat = read_chat_request(*call);
  const TextRequest& request = chat.request;
  check_template_effects(*model, request, *call);
  GenerationPlan plan;
  plan.prompts.push_back(prepare(*model, request, *call, "messages"));
  ResponseFrame frame = make_frame(*call, "chatcmpl-", chat.model);
  frame.object = chat.stream.streams ? "chat.completion.chunk" : "chat.completion";
  frame.choices = request.choices;
  frame.prompt_tokens = static_cast<int>(plan.prompts.front().generation.prompt.size());
  frame.stream = chat.stream;
  plan.streams = chat.stream.streams;
  plan.writer = make_chat_writer(chat.output, std::move(frame), model->tokenizer());
  start_generation(call, model, std::move(plan));
}

void count_chat_tokens(SharedCall call) {
  const auto model = call->shared().model();
  const TextRequest request = read_chat_request(*call).request;
  check_template_effects(*model, request, *call);
  call->respond(200, {{"object", "response.input_tokens"},
                      {"input_tokens", prompt_tokens(*model, request, "messages").size()}});
}

}  // namespace inferno::server
