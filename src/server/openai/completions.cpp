// POST /v1/completions
#include <fmt/format.h>

#include <utility>
#include <variant>

#include "server/doors.h"
#include "server/fields/constraint_fields.h"
#include "server/fields/fields.h"
#include "server/generation.h"
#include "server/openai/completion_writer.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

constexpr std::size_t max_prompts = 64;
constexpr int max_logprobs = 20;
constexpr int default_max_tokens = 16;  // OpenAI's

using PromptInput = std::variant<std::string, std::vector<TokenId>>;

struct CompletionRequest {
  TextRequest request;  // without a prompt
  std::vector<PromptInput> prompts;
  std::string model;  // as the response names it
  StreamOptions stream;
  bool echo = false;
  bool logprobs = false;
  bool only_echo = false;
};

constexpr std::string_view prompt_kinds =
    "a string, an array of token ids, or an array of up to 64 of either";

std::vector<TokenId> tokens_of(const Json& ids, const std::string& where, int vocab) {
  std::vector<TokenId> tokens;
  if (ids.empty()) refuse_value(where, "at least one token id", ids);
  for (const Json& id : ids) {
    const bool is_token =
        id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < vocab;
    if (!is_token) refuse_value(where, fmt::format("token ids from 0 to {}", vocab - 1), id);
    tokens.push_back(id.get<TokenId>());
  }
  return tokens;
}

std::vector<PromptInput> prompts_of(const Json* prompt, int vocab) {
  if (prompt == nullptr) throw invalid(fmt::format("prompt: expected {}", prompt_kinds), "prompt");
  if (prompt->is_string()) return {prompt->get<std::string>()};
  if (!prompt->is_array() || prompt->empty()) refuse_value("prompt", prompt_kinds, *prompt);
  if (prompt->front().is_number()) return {tokens_of(*prompt, "prompt", vocab)};
  if (prompt->size() > max_prompts) refuse_value("prompt", prompt_kinds, *prompt);
  std::vector<PromptInput> prompts;
  for (std::size_t i = 0; i < prompt->size(); ++i) {
    const Json& one = (*prompt)[i];
    const std::string where = fmt::format("prompt[{}]", i);
    if (one.is_string()) {
      prompts.emplace_back(one.get<std::string>());
    } else if (one.is_array()) {
      prompts.emplace_back(tokens_of(one, where, vocab));
    } else {
      refuse_value(where, "a string or an array of token ids", one);
    }
  }
  return prompts;
}

void check_best_of(Fields& fields, int choices) {
  const auto candidates = fields.take_integer("best_of", 0, 20);
  if (!candidates || *candidates == choices || (*candidates == 0 && choices == 1)) return;
  throw invalid("best_of is not supported: every answer is returned (ask for n answers and choose)",
                "best_of");
}

void take_completion_logprobs(Fields& fields, CompletionRequest& completion) {
  const auto top = fields.take_integer("logprobs", 0, max_logprobs);
  if (!top) return;
  completion.logprobs = true;
  completion.request.settings.logprobs = static_cast<int>(*top);
  if (completion.echo) completion.request.prompt_logprobs = static_cast<int>(*top);
}

// max_tokens 0 scores a prompt: nothing is generated, and the prompt comes back.
bool take_only_echo(Json& body) {
  const auto limit = body.find("max_tokens");
  if (limit == body.end() || !limit->is_number_integer() || *limit != 0) return false;
  const auto echo = body.find("echo");
  if (echo == body.end() || *echo != true) {
    refuse_value("max_tokens", "at least 1, -1 for no limit, or 0 together with \"echo\": true", *limit);
  }
  *limit = 1;
  return true;
}

CompletionRequest read_request(Call& call, int vocab) {
  Json body = call.take_body();
  CompletionRequest completion;
  completion.only_echo = take_only_echo(body);
  Fields fields(body);
  completion.model = call.shared().served_name(fields.take("model"));
  completion.prompts = prompts_of(fields.take("prompt"), vocab);
  completion.request = take_common(fields, call).request;
  // They belong to chat templates, and this prompt has none.
  for (const char* name : {"reasoning_effort", "include_reasoning", "chat_template_kwargs",
                           "add_generation_prompt", "continue_final_message"}) {
    if (fields.take(name) != nullptr) call.ignore(name);
  }
  TextRequest& request = completion.request;
  if (!request.settings.max_tokens) request.settings.max_tokens = default_max_tokens;
  request.parse_special = fields.take_bool("parse_special").value_or(false);
  request.choices = take_choices(fields);
  completion.stream = take_stream_options(fields, call);
  completion.echo = fields.take_bool("echo").value_or(false);
  take_completion_logprobs(fields, completion);
  check_best_of(fields, request.choices);
  take_text_constraint(fields, request);
  fields.refuse("suffix", "the model continues a text and does not fill gaps");
  fields.refuse("prompt_embeds", "send text or token ids");
  if (!fields.take_bool("add_special_tokens").value_or(true)) {
    throw invalid("add_special_tokens false is not supported: send the prompt as token ids",
                  "add_special_tokens");
  }
  fields.finish(call);
  return completion;
}

std::string text_of(const PromptInput& input, const Tokenizer& tokenizer) {
  const auto* text = std::get_if<std::string>(&input);
  return text != nullptr ? *text : tokenizer.decode(std::get<std::vector<TokenId>>(input));
}

}  // namespace

void completions(SharedCall call) {
  const auto model = call->shared().model();
  const Tokenizer& tokenizer = model->tokenizer();
  CompletionRequest completion = read_request(*call, tokenizer.size());
  ResponseFrame frame = make_frame(*call, "cmpl-", completion.model);
  frame.object = "text_completion";
  frame.choices = completion.request.choices;
  frame.stream = completion.stream;
  GenerationPlan plan;
  std::vector<std::string> echoes;
  for (const PromptInput& input : completion.prompts) {
    if (completion.echo) echoes.push_back(text_of(input, tokenizer));
    TextRequest& request = completion.request;
    request.prompt.reset();
    request.prompt_tokens.reset();
    if (const auto* text = std::get_if<std::string>(&input)) {
      request.prompt = *text;
    } else {
      request.prompt_tokens = std::get<std::vector<TokenId>>(input);
    }
    plan.prompts.push_back(prepare(*model, request, *call, "prompt"));
    frame.prompt_tokens += static_cast<int>(plan.prompts.back().generation.prompt.size());
  }
  plan.streams = completion.stream.streams;
  plan.writer = make_completion_writer({.prompts = completion.prompts.size(),
                                        .echoes = std::move(echoes),
                                        .logprobs = completion.logprobs,
                                        .only_echo = completion.only_echo},
                                       std::move(frame), tokenizer);
  start_generation(call, model, std::move(plan));
}

}  // namespace inferno::server
