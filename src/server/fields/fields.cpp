#include "server/fields/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/utf8.h"

namespace inferno::server {
namespace {

constexpr std::size_t max_fields = 1024;
constexpr std::size_t max_shown = 64;  // bytes of a value in a message

// Fields of other servers and of OpenAI that change the answer. `neutral` is a value that does not, beside
// false, 0, "" and empty lists; with NaN only false does not.
struct RefusedField {
  std::string_view name, why;
  std::optional<double> neutral = {};
};

constexpr std::string_view no_constraints =
    "constraints of this kind are not available: use response_format, grammar or regex";
constexpr std::string_view no_sampler = "this sampling method is not available";
constexpr std::string_view no_adapters = "adapters are not available: serve the merged model";
constexpr std::string_view no_budget = "a limit for reasoning is not available: use reasoning_effort";

constexpr RefusedField refused_fields[] = {
    {"structural_tag", no_constraints},
    {"ebnf", no_constraints},
    {"allowed_token_ids", "use logit_bias"},
    {"bad_words", "use logit_bias"},
    {"logits_processors", no_sampler},
    {"mirostat", no_sampler},
    {"dry_multiplier", no_sampler},
    {"xtc_probability", no_sampler},
    {"dynatemp_range", no_sampler},
    {"top_n_sigma", no_sampler, -1},
    {"tfs_z", no_sampler, 1},
    {"top_a", no_sampler},
    {"eta_cutoff", no_sampler},
    {"epsilon_cutoff", no_sampler},
    {"smoothing_factor", no_sampler},
    {"adaptive_target", no_sampler, -1},
    {"use_beam_search", no_sampler},
    {"length_penalty", no_sampler, 1},
    {"samplers", "the order of the samplers is fixed"},
    // POST /v1/completions reads these two itself.
    {"echo", "use continue_final_message to go on with the last message"},
    {"best_of", "every answer is returned (ask for n answers and choose)", 1},
    {"extra_body", "it is an argument of OpenAI's Python client: put its fields beside the others"},
    {"lora", no_adapters},
    {"lora_request", no_adapters},
    {"lora_path", no_adapters},
    {"chat_template", "only the model's own template is used (the flag --chat-template-file changes it)"},
    {"documents", "send the documents as messages"},
    {"truncate_prompt_tokens", "a prompt is never cut: send a shorter one"},
    {"skip_special_tokens", "control tokens are never part of the text", 1},
    {"include_stop_str_in_output", "stop strings are never part of the text"},
    // vLLM takes 0 for the tokens alone, without alternatives.
    {"prompt_logprobs",
     "log probabilities of the prompt are not available here (POST /v1/completions has them "
     "with echo and logprobs)",
     std::numeric_limits<double>::quiet_NaN()},
    {"thinking_token_budget", no_budget},
    {"thinking_budget_tokens", no_budget},
    {"reasoning_budget", no_budget, -1},
};

bool asks_for_nothing(const Json& value) {
  switch (value.type()) {
    case Json::value_t::null: return true;
    case Json::value_t::boolean: return !value.get<bool>();
    case Json::value_t::string: return value.get_ref<const std::string&>().empty();
    case Json::value_t::array:
    case Json::value_t::object: return value.empty();
    case Json::value_t::number_integer:
    case Json::value_t::number_unsigned:
    case Json::value_t::number_float: return value.get<double>() == 0;
    case Json::value_t::binary:
    case Json::value_t::discarded: break;
  }
  return false;
}

bool is_neutral(const RefusedField& field, const Json& value) {
  if (!field.neutral) return asks_for_nothing(value);
  if (value.is_boolean()) return value.get<bool>() == (*field.neutral > 0);
  return value.is_number() && value.get<double>() == *field.neutral;
}

std::string shown(const Json& value) {
  if (value.is_array()) return fmt::format("an array of {}", value.size());
  if (value.is_object()) return "an object";
  if (value.is_string()) return quote(value.get_ref<const std::string&>(), max_shown);
  return dumped(value);
}

// Written as 1.0 or 1e3 it is an integer too. nullopt: not an integer, or beyond 64 bits.
std::optional<std::int64_t> integer_of(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto number = value.get<std::uint64_t>();
    if (number > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) return std::nullopt;
    return static_cast<std::int64_t>(number);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double max_exact = 9007199254740992.0;  // 2^53
  if (!(std::abs(number) <= max_exact) || std::trunc(number) != number) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

}  // namespace

void refuse_value(const std::string& field, std::string_view expected, const Json& found) {
  throw invalid(fmt::format("{}: expected {}, found {}", field, expected, shown(found)), field);
}

Fields::Fields(const Json& body, std::string prefix) : body_(body), prefix_(std::move(prefix)) {
  if (body_.size() > max_fields) {
    throw invalid(
        fmt::format("request body: expected at most {} fields, found {}", max_fields, body_.size()));
  }
}

const Json* Fields::take(std::string_view name) {
  const auto found = body_.find(name);
  if (found == body_.end()) return nullptr;
  taken_.emplace(name);
  return found->is_null() ? nullptr : &*found;
}

std::optional<bool> Fields::take_bool(std::string_view name) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_boolean()) refuse_value(full_name(name), "true or false", *value);
  return value->get<bool>();
}

std::optional<std::int64_t> Fields::take_integer(std::string_view name, std::int64_t low, std::int64_t high) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  const auto number = integer_of(*value);
  if (!number || *number < low || *number > high) {
    using Limits = std::numeric_limits<std::int64_t>;
    refuse_value(full_name(name),
                 high < Limits::max()  ? fmt::format("an integer from {} to {}", low, high)
                 : low > Limits::min() ? fmt::format("an integer, at least {}", low)
                                       : "a 64-bit integer",
                 *value);
  }
  return number;
}

std::optional<double> Fields::take_number(std::string_view name, double low, double high) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  const double number = value->is_number() ? value->get<double>() : std::nan("");
  if (!(number >= low && number <= high)) {
    refuse_value(full_name(name), fmt::format("a number from {} to {}", low, high), *value);
  }
  return number;
}

std::optional<std::string> Fields::take_string(std::string_view name) {
  const Json* value = take(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) refuse_value(full_name(name), "a string", *value);
  return value->get<std::string>();
}

const Json* Fields::take_array(std::string_view name, std::size_t max_entries) {
  const Json* value = take(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array() || value->size() > max_entries) {
    refuse_value(full_name(name), fmt::format("an array of at most {} entries", max_entries), *value);
  }
  return value;
}

const Json* Fields::take_object(std::string_view name) {
  const Json* value = take(name);
  if (value != nullptr && !value->is_object()) refuse_value(full_name(name), "an object", *value);
  return value;
}

void Fields::accept(std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) take(name);
}

void Fields::refuse(std::string_view name, std::string_view why) {
  const Json* value = take(name);
  if (value == nullptr || asks_for_nothing(*value)) return;
  throw invalid(fmt::format("{} is not supported: {}", full_name(name), why), full_name(name));
}

std::vector<std::string> Fields::rest() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : body_.items()) {
    if (!value.is_null() && value != false && !taken_.contains(name)) names.push_back(name);
  }
  return names;
}

void Fields::finish(Call& call) {
  for (const auto& [name, value] : body_.items()) {
    if (value.is_null() || taken_.contains(name)) continue;
    const auto refused = std::ranges::find(refused_fields, std::string_view(name), &RefusedField::name);
    if (refused == std::end(refused_fields)) {
      call.ignore(full_name(name));
    } else if (!is_neutral(*refused, value)) {
      throw invalid(fmt::format("{} is not supported: {}", full_name(name), refused->why), full_name(name));
    }
  }
}

}  // namespace inferno::server
