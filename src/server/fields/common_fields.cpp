// What the doors have in common: the fields that mean the same in each, and the objects that every response
// has.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <span>

#include "base/error.h"
#include "base/utf8.h"
#include "chat/conversation.h"
#include "server/fields/fields.h"
#include "server/shared.h"

namespace inferno::server {
namespace {

constexpr std::int64_t max_int64 = std::numeric_limits<std::int64_t>::max();
constexpr double min_share = 1e-6;  // of the probability: top_p 0 leaves the most likely token
constexpr std::size_t max_stop_tokens = 1024;
constexpr std::size_t max_name = 128;
constexpr std::size_t max_salt = 1024;  // bytes

// A setting under its own name or that of another program. Range and kind are those of set_sampling.
void take_setting(Fields& fields, std::string_view name, SamplingSettings& settings) {
  const Json* value = fields.take(name);
  if (value == nullptr) return;
  try {
    set_sampling(settings, name, *value);
  } catch (const Error& error) {
    // The message begins with the setting's usual name; the client knows the name that it sent.
    const std::string_view message = error.what();
    const std::size_t colon = std::min(message.find(':'), message.size());
    throw invalid(fmt::format("{}{}", name, message.substr(colon)), std::string(name));
  }
}

std::optional<float> take_share(Fields& fields, std::string_view name) {
  const auto share = fields.take_number(name, 0, 1);
  return share ? std::optional(static_cast<float>(std::max(*share, min_share))) : std::nullopt;
}

// -1: as many as the context holds. What is beyond the context is cut later, so any size is fine.
std::optional<int> take_limit(Fields& fields, std::string_view name) {
  const auto limit = fields.take_integer(name, -1, max_int64);
  if (!limit) return std::nullopt;
  if (*limit == 0) refuse_value(fields.full_name(name), "at least 1, or -1 for no limit", *limit);
  return static_cast<int>(std::min<std::int64_t>(*limit, std::numeric_limits<int>::max()));
}

std::optional<std::vector<TokenId>> take_stop_tokens(Fields& fields, int vocab) {
  const Json* ids = fields.take_array("stop_token_ids", max_stop_tokens);
  if (ids == nullptr) return std::nullopt;
  std::vector<TokenId> tokens;
  for (const Json& id : *ids) {
    const bool is_token =
        id.is_number_integer() && id.get<std::int64_t>() >= 0 && id.get<std::int64_t>() < vocab;
    if (!is_token) refuse_value("stop_token_ids", fmt::format("token ids from 0 to {}", vocab - 1), id);
    tokens.push_back(id.get<TokenId>());
  }
  return tokens;
}

void take_limits(Fields& fields, SamplingSettings& settings) {
  // All are read, so that a wrong one never goes unnoticed; the newest name counts.
  const auto predict = take_limit(fields, "n_predict");
  const auto tokens = take_limit(fields, "max_tokens");
  const auto completion = take_limit(fields, "max_completion_tokens");
  for (const auto& limit : {completion, tokens, predict}) {
    if (limit && !settings.max_tokens) settings.max_tokens = limit;
  }
  const auto least = fields.take_integer("min_tokens", 0, std::numeric_limits<int>::max());
  if (!least) return;
  settings.min_tokens = static_cast<int>(*least);
  if (settings.max_tokens.value_or(-1) >= 0 && *settings.min_tokens > *settings.max_tokens) {
    refuse_value("min_tokens", fmt::format("at most max_tokens, which is {}", *settings.max_tokens), *least);
  }
}

// llama-server's window of the repetition penalty. Ours is the whole text.
void take_penalty_window(Fields& fields, const SamplingSettings& settings) {
  const auto window = fields.take_integer("repeat_last_n", -1, max_int64);
  if (!window || *window < 0 || settings.repeat_penalty.value_or(1) == 1) return;
  refuse_value("repeat_last_n", "-1: the repetition penalty counts the whole text", *window);
}

SamplingSettings take_sampling(Fields& fields, int vocab) {
  SamplingSettings settings;
  if (const auto value = fields.take_number("temperature", 0, 2))
    settings.temperature = static_cast<float>(*value);
  settings.top_p = take_share(fields, "top_p");
  settings.typical_p = take_share(fields, "typical_p");
  for (const char* name : {"top_k", "min_p", "repeat_penalty", "repetition_penalty", "presence_penalty",
                           "frequency_penalty", "stop", "ignore_eos", "logit_bias"}) {
    take_setting(fields, name, settings);
  }
  take_penalty_window(fields, settings);
  // Any 64-bit seed is one; -1 is a random one.
  const auto seed = fields.take_integer("seed", std::numeric_limits<std::int64_t>::min(), max_int64);
  if (seed) settings.seed = *seed < -1 ? (*seed & max_int64) : *seed;
  for (const auto& [token, bias] : settings.logit_bias.value_or(std::vector<std::pair<TokenId, float>>{})) {
    if (token >= vocab) refuse_value("logit_bias", fmt::format("token ids from 0 to {}", vocab - 1), token);
  }
  take_limits(fields, settings);
  settings.stop_token_ids = take_stop_tokens(fields, vocab);
  return settings;
}

// Below the fields of the request: those that the server was started with.
Json take_template_variables(Fields& fields, const ServerSettings& settings) {
  Json variables = settings.template_variables;
  const Json* given = fields.take_object("chat_template_kwargs");
  if (given == nullptr) return variables;
  constexpr std::size_t max_variables = 1024;  // each is looked up among the others
  if (given->size() > max_variables) {
    throw invalid(fmt::format("chat_template_kwargs: expected at most {} variables, found {}", max_variables,
                              given->size()),
                  "chat_template_kwargs");
  }
  if (!variables.is_object()) variables = Json::object();
  variables.update(*given);
  return variables;
}

// Prefixes are shared within a key and, within it, within a salt.
std::string take_cache_scope(Fields& fields, const Call& call) {
  const auto salt = fields.take_string("cache_salt");
  if (salt && salt->size() > max_salt) {
    refuse_value("cache_salt", fmt::format("at most {} bytes", max_salt), *salt);
  }
  return fmt::format("{}/{}", call.key(), salt.value_or(""));
}

void take_turns(Fields& fields, TextRequest& request) {
  const auto continues = fields.take_bool("continue_final_message");
  const auto opens = fields.take_bool("add_generation_prompt");
  request.continue_final_message = continues.value_or(false);
  if (request.continue_final_message && opens.value_or(false)) {
    throw invalid(
        "continue_final_message: expected false because add_generation_prompt is true: a message is either "
        "continued or a new one is begun",
        "continue_final_message");
  }
  request.add_generation_prompt = opens.value_or(!request.continue_final_message);
}

bool is_name_character(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '_' || letter == '-' || letter == '.';
}

// The message of an error below begins with the field if it knows it: "messages[2].content: expected …".
std::string field_of(std::string_view message, std::string_view param) {
  const std::string_view field = message.substr(0, message.find(':'));
  const bool is_field = field.starts_with(param) && field.find(' ') == std::string_view::npos;
  return std::string(is_field ? field : param);
}

// An error of the model with the prompt that `param` has.
ApiError prompt_error(const Error& error, std::string_view param) {
  ApiError problem = api_error_of(error);
  if (problem.status == 400) problem.param = field_of(error.what(), param);
  return problem;
}

// All answers as one: each prompt counts once, each answer's tokens count, times are the longest.
AnswerCounts sum_of(const std::vector<Answer>& answers, int choices) {
  AnswerCounts sum = counts_of(answers.front());
  Finished& total = sum.finished;
  for (std::size_t i = 1; i < answers.size(); ++i) {
    const Answer& answer = answers[i];
    const Finished& finished = answer.finished;
    if (i % static_cast<std::size_t>(choices) == 0) {
      total.prompt_tokens += finished.prompt_tokens;
      total.cached_tokens += finished.cached_tokens;
    }
    sum.tokens += answer.tokens.size();
    total.queue_seconds = std::max(total.queue_seconds, finished.queue_seconds);
    total.prompt_seconds = std::max(total.prompt_seconds, finished.prompt_seconds);
    total.decode_seconds = std::max(total.decode_seconds, finished.decode_seconds);
    sum.total_seconds = std::max(sum.total_seconds, answer.total_seconds);
    sum.first_token_seconds = std::min(sum.first_token_seconds, answer.first_token_seconds);
  }
  return sum;
}

// Where the first prompt stops being one that is in the cache, and how it goes on from there: a date or an id
// in a system prompt is found at a glance.
Json prefix_match(const Answer& first, const Call& call) {
  constexpr std::size_t max_next = 8;  // tokens
  const auto matched = static_cast<std::size_t>(first.finished.cached_tokens);
  Json match = {{"tokens", matched}};
  const auto model = call.shared().model_if_loaded();
  if (model == nullptr || matched >= call.prompt().size()) return match;
  const auto rest = std::span(call.prompt()).subspan(matched);
  match["next"] = model->tokenizer().decode(rest.first(std::min(rest.size(), max_next)));
  return match;
}

// Whether the one setting of `probe` changes a prompt. A short conversation tells as much as the client's, in
// far less time.
bool changes_prompt(const TextModel& model, TextRequest& probe) {
  probe.messages = first_messages({}, "?");
  try {
    return model.without_effect(probe).empty();
  } catch (const Error&) {
    return true;  // prepare() reports what the template refuses
  }
}

// Whether the model's prompt may depend on the variable: its template names it. Harmony for gpt-oss is
// native.
bool reads_variable(const TextModel& model, const std::string& name) {
  constexpr std::string_view of_harmony[] = {"reasoning_effort", "model_identity",     "builtin_tools",
                                             "system_message",   "knowledge_cutoff",   "current_date",
                                             "valid_channels",   "auto_drop_analysis", "response_format"};
  const bool is_gpt_oss = model.architecture() == "gpt_oss" || model.architecture() == "gpt-oss";
  if (is_gpt_oss && std::ranges::find(of_harmony, std::string_view(name)) != std::end(of_harmony)) {
    return true;
  }
  return has_word(model.chat_template(), name);
}

// Those of the request, not those that the server was started with.
void name_unread_variables(const TextModel& model, const Json& variables, Call& call) {
  if (!variables.is_object()) return;
  const Json& defaults = call.shared().settings().template_variables;
  for (const auto& [name, value] : variables.items()) {
    if (defaults.is_object() && defaults.contains(name)) continue;
    if (!reads_variable(model, name)) call.ignore("chat_template_kwargs." + name);
  }
}

}  // namespace

bool has_word(std::string_view source, std::string_view word) {
  const auto is_part = [&](std::size_t at) {
    return at < source.size() &&
           (std::isalnum(static_cast<unsigned char>(source[at])) != 0 || source[at] == '_');
  };
  if (word.empty()) return false;
  for (std::size_t at = source.find(word); at != std::string_view::npos; at = source.find(word, at + 1)) {
    if (!(at > 0 && is_part(at - 1)) && !is_part(at + word.size())) return true;
  }
  return false;
}

CommonFields take_common(Fields& fields, Call& call) {
  const ServerSettings& settings = call.shared().settings();
  const auto model = call.shared().model();
  CommonFields common;
  TextRequest& request = common.request;
  request.settings = merged(settings.defaults, take_sampling(fields, model->tokenizer().size()));
  request.template_variables = take_template_variables(fields, settings);
  request.reasoning_effort = settings.reasoning_effort;
  take_effort(fields, "reasoning_effort", request);
  take_turns(fields, request);
  request.client = call.client();
  request.cache_scope = take_cache_scope(fields, call);
  request.reuse_prefix = fields.take_bool("cache_prompt").value_or(true);
  common.include_reasoning = fields.take_bool("include_reasoning").value_or(true);
  fields.accept({"user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention",
                 "prompt_cache_options", "safety_identifier"});
  return common;
}

void take_effort(Fields& fields, std::string_view name, TextRequest& request) {
  const auto effort = fields.take_string(name);
  if (!effort) return;
  if (!effort_problem(*effort).empty()) {
    refuse_value(fields.full_name(name), "none, minimal, low, medium, high, xhigh or max", *effort);
  }
  request.reasoning_effort = *effort;
  // Templates that know no degrees have a switch.
  if (*effort == "none") request.think = false;
}

Json function_tool(const Json& function, const std::string& where, Call& call) {
  if (!function.is_object()) refuse_value(where, "an object with the name of a function", function);
  Fields fields(function, where + ".");
  const auto name = fields.take_string("name");
  const bool has_name =
      name && !name->empty() && name->size() <= max_name && std::ranges::all_of(*name, is_name_character);
  if (!has_name) {
    refuse_value(where + ".name", "at most 128 letters, digits, \"_\", \"-\" and \".\"",
                 name ? Json(*name) : Json(nullptr));
  }
  Json checked = {{"name", *name}};
  if (const auto text = fields.take_string("description")) checked["description"] = *text;
  if (const Json* parameters = fields.take_object("parameters")) checked["parameters"] = *parameters;
  fields.take_bool("strict");  // for constrain_calls()
  fields.accept({"type"});
  for (const std::string& rest : fields.rest()) call.ignore("tools." + rest);
  return {{"type", "function"}, {"function", std::move(checked)}};
}

void check_template_effects(const TextModel& model, const TextRequest& request, Call& call) {
  if (request.tools.is_array() && !request.tools.empty() && !model.shows_tools()) {
    throw invalid(std::string(tools_not_shown), "tools");
  }
  name_unread_variables(model, request.template_variables, call);
  // The value may be the model's default: then it changes nothing and is not ignored, but another one would
  // tell.
  TextRequest probe;
  probe.template_variables = request.template_variables;
  if (request.reasoning_effort != call.shared().settings().reasoning_effort) {
    bool is_known = false;
    for (const char* effort : {"low", "high"}) {
      probe.reasoning_effort = effort;
      is_known = is_known || changes_prompt(model, probe);
    }
    if (!is_known) call.ignore("reasoning_effort");
  } else if (request.think) {
    bool is_known = false;
    for (const bool thinks : {true, false}) {
      probe.think = thinks;
      is_known = is_known || changes_prompt(model, probe);
    }
    if (!is_known) call.ignore("thinking");
  }
}

PreparedRequest prepare(const TextModel& model, const TextRequest& request, Call& call,
                        std::string_view param) {
  PreparedRequest prepared;
  try {
    prepared = model.prepare(request);
  } catch (const Error& error) {
    throw prompt_error(error, param);
  }
  // 0 is no limit: the engine fills the context.
  const int room = model.engine().context() - static_cast<int>(prepared.generation.prompt.size());
  prepared.generation.max_tokens = std::min(prepared.generation.max_tokens, room);
  for (const std::string& warning : prepared.warnings) call.warn(warning);
  if (call.prompt().empty()) call.set_prompt(prepared.generation.prompt);
  return prepared;
}

std::vector<TokenId> prompt_tokens(const TextModel& model, const TextRequest& request,
                                   std::string_view param) {
  Prompt prompt;
  try {
    prompt = model.render(request, max_counted_tokens);
  } catch (const Error& error) {
    throw prompt_error(error, param);
  }
  if (!prompt.is_too_long) return std::move(prompt.tokens);
  throw invalid(fmt::format("{}: expected at most {} tokens", param, max_counted_tokens), std::string(param));
}

Json timings_of(const std::vector<Answer>& answers, int choices, const Call& call) {
  if (!call.shared().settings().timings || answers.empty()) return nullptr;
  return timings_json(sum_of(answers, choices));
}

Json inferno_of(const std::vector<Answer>& answers, int choices, const Call& call) {
  if (!call.shared().settings().timings || answers.empty()) return nullptr;
  const AnswerCounts sum = sum_of(answers, choices);
  Json warnings = Json::array();
  const auto add = [&](const std::vector<std::string>& all) {
    for (const std::string& warning : all) {
      if (std::ranges::find(warnings, Json(warning)) == warnings.end()) warnings.push_back(warning);
    }
  };
  add(call.warnings());
  for (const Answer& answer : answers) add(answer.warnings);
  return {{"request_id", call.id()},
          {"queue_ms", sum.finished.queue_seconds * 1e3},
          {"prefill_ms", sum.finished.prompt_seconds * 1e3},
          {"decode_ms", sum.finished.decode_seconds * 1e3},
          {"cached_tokens", sum.finished.cached_tokens},
          {"prefix_match", prefix_match(answers.front(), call)},
          {"seed", sum.finished.seed},
          {"warnings", std::move(warnings)}};
}

}  // namespace inferno::server
