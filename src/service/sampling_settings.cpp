#include "service/sampling_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <variant>

#include "base/error.h"
#include "chat/json.h"

namespace inferno {
namespace {

using Settings = SamplingSettings;
using Bias = std::vector<std::pair<TokenId, float>>;

template <class T>
using Member = std::optional<T> Settings::*;

struct Field {
  SettingName name;
  std::variant<Member<float>, Member<int>, Member<std::int64_t>, Member<bool>,
               Member<std::vector<std::string>>, Member<std::vector<TokenId>>, Member<Bias>>
      member;
  double min = 0, max = 0;  // for numbers
};

constexpr double max_int = std::numeric_limits<int>::max();
constexpr double min_share = 1e-6;  // of the probability: at least one token must remain
constexpr std::size_t max_stops = 16, max_stop_bytes = 256, max_stop_tokens = 128, max_biases = 1024;

// In the order of --help and /show.
const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {{"max_tokens",
        {"n_predict", "num_predict", "max_completion_tokens"},
        "maximum number of tokens to generate; -1: as many as the context holds"},
       &Settings::max_tokens,
       -1,
       max_int},
      {{"min_tokens", {}, "do not end the answer before this many tokens"},
       &Settings::min_tokens,
       0,
       max_int},
      {{"temperature", {"temp"}, "0: always the most likely token; higher values give more varied text"},
       &Settings::temperature,
       0,
       100},
      {{"top_k", {}, "only the K most likely tokens; 0: all"}, &Settings::top_k, -1, max_int},
      {{"top_p", {}, "only the most likely tokens that together have this probability; 1: all"},
       &Settings::top_p,
       min_share,
       1},
      {{"min_p", {}, "only tokens with at least this probability relative to the most likely one; 0: all"},
       &Settings::min_p,
       0,
       1},
      {{"typical_p", {"typical"}, "only the most typical tokens that together have this probability; 1: all"},
       &Settings::typical_p,
       min_share,
       1},
      {{"repeat_penalty", {"repetition_penalty"}, "above 1: tokens that have occurred become less likely"},
       &Settings::repeat_penalty,
       0.01,
       100},
      {{"presence_penalty", {}, "subtracted from the logits of tokens that have occurred in the answer"},
       &Settings::presence_penalty,
       -2,
       2},
      {{"frequency_penalty", {}, "subtracted from the logits of tokens for each occurrence in the answer"},
       &Settings::frequency_penalty,
       -2,
       2},
      {{"seed", {}, "the same seed gives the same answer; -1: random"}, &Settings::seed},
      {{"stop", {"reverse_prompt"}, "end the answer before this text; may be given several times"},
       &Settings::stop},
      {{"stop_token_ids", {}, "end the answer at this token; may be given several times"},
       &Settings::stop_token_ids},
      {{"ignore_eos", {}, "continue after the end-of-text token"}, &Settings::ignore_eos},
      {{"logit_bias", {}, "TOKEN=BIAS: make a token more or, below 0, less likely; may be repeated"},
       &Settings::logit_bias},
      {{"logprobs", {"top_logprobs"}, "log probability of each token, and of the N most likely alternatives"},
       &Settings::logprobs,
       0,
       20},
  };
  return all;
}

const Field* field_named(std::string_view name) {
  for (const Field& field : fields()) {
    const auto& aliases = field.name.aliases;
    if (field.name.name == name || std::find(aliases.begin(), aliases.end(), name) != aliases.end()) {
      return &field;
    }
  }
  return nullptr;
}

[[noreturn]] void refuse(const Field& field, const std::string& expected, const Json& value) {
  std::string found = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (found.size() > 60) found = found.substr(0, 57) + "...";
  fail(ErrorKind::invalid_request,
       fmt::format("{}: expected {}, found {}", field.name.name, expected, found));
}

double number(const Field& field, const Json& value, bool whole) {
  const std::string range =
      fmt::format("{} from {} to {}", whole ? "a whole number" : "a number", field.min, field.max);
  if (!value.is_number()) refuse(field, range, value);
  const double found = value.get<double>();
  if (whole && std::trunc(found) != found) refuse(field, range, value);
  if (!(found >= field.min && found <= field.max)) refuse(field, range, value);
  return found;
}

void assign(const Field& field, std::optional<float>& to, const Json& value) {
  to = static_cast<float>(number(field, value, /*whole=*/false));
}

void assign(const Field& field, std::optional<int>& to, const Json& value) {
  to = static_cast<int>(number(field, value, /*whole=*/true));
  if (field.name.name == "max_tokens" && *to == 0) refuse(field, "at least 1, or -1 for no limit", value);
}

void assign(const Field& field, std::optional<std::int64_t>& to, const Json& value) {
  // Not through double, which would round large seeds.
  const bool too_large = value.is_number_unsigned() &&
                         value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!value.is_number_integer() || too_large || value.get<std::int64_t>() < -1) {
    refuse(field, "a whole number from 0 to 2^63 - 1, or -1 for a random seed", value);
  }
  to = value.get<std::int64_t>();
}

void assign(const Field& field, std::optional<bool>& to, const Json& value) {
  if (!value.is_boolean()) refuse(field, "true or false", value);
  to = value.get<bool>();
}

void assign(const Field& field, std::optional<std::vector<std::string>>& to, const Json& value) {
  std::vector<std::string> stops;
  const std::string expected =
      fmt::format("a string or up to {} strings of 1 to {} bytes", max_stops, max_stop_bytes);
  for (const Json& stop : value.is_array() ? value : Json::array({value})) {
    if (!stop.is_string()) refuse(field, expected, value);
    stops.push_back(stop.get<std::string>());
    if (stops.back().empty() || stops.back().size() > max_stop_bytes) refuse(field, expected, value);
  }
  if (stops.size() > max_stops) refuse(field, expected, value);
  to = std::move(stops);
}

void assign(const Field& field, std::optional<std::vector<TokenId>>& to, const Json& value) {
  const std::string expected = fmt::format("an array of up to {} token ids", max_stop_tokens);
  if (!value.is_array() || value.size() > max_stop_tokens) refuse(field, expected, value);
  std::vector<TokenId> tokens;
  for (const Json& token : value) {
    const bool is_token =
        token.is_number_integer() && token.get<double>() >= 0 && token.get<double>() <= max_int;
    if (!is_token) refuse(field, expected, value);
    tokens.push_back(token.get<TokenId>());
  }
  to = std::move(tokens);
}

// -1 if it is none.
TokenId token_of(const std::string& text) {
  TokenId token = -1;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), token);
  return problem == std::errc() && end == text.data() + text.size() ? token : -1;
}

// OpenAI's object {"15043": -1.5}, or llama-server's list [[15043, -1.5], [15044, false]], where false is a
// ban.
void assign(const Field& field, std::optional<Bias>& to, const Json& value) {
  const bool is_list = value.is_array();
  if ((!value.is_object() && !is_list) || value.size() > max_biases) {
    refuse(field, fmt::format("up to {} token ids with a bias each", max_biases), value);
  }
  Bias biases;
  for (const auto& [key, entry] : value.items()) {
    const bool is_pair = !is_list || (entry.is_array() && entry.size() == 2 && entry[0].is_number_integer());
    const TokenId token = is_pair ? token_of(is_list ? entry[0].dump() : key) : -1;
    const Json bias = token < 0 ? Json() : !is_list ? entry : entry[1] == false ? Json(-100) : entry[1];
    if (!bias.is_number() || !(std::abs(bias.get<double>()) <= 100)) {
      refuse(field, "token ids with a bias from -100 to 100 each", value);
    }
    biases.emplace_back(token, bias.get<float>());
  }
  to = std::move(biases);
}

Json shown(float value) {
  // The shortest form: 0.7, not 0.699999988079071.
  return Json::parse(fmt::format("{}", value));
}
Json shown(int value) {
  return value;
}
Json shown(std::int64_t value) {
  return value;
}
Json shown(bool value) {
  return value;
}
Json shown(const std::vector<std::string>& value) {
  return value;
}
Json shown(const std::vector<TokenId>& value) {
  return value;
}
Json shown(const Bias& value) {
  Json object = Json::object();
  for (const auto& [token, bias] : value) object[std::to_string(token)] = shown(bias);
  return object;
}

// "15043=-1.5", and llama.cpp's "15043-1.5" and "15043+1.5".
Json parse_bias(const Field& field, std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  std::string_view bias = text.substr(digits);
  const bool has_equals = bias.starts_with('=');
  if (has_equals || bias.starts_with('+')) bias.remove_prefix(1);
  const Json value = Json::parse(bias, nullptr, /*allow_exceptions=*/false);
  if (digits == 0 || digits == text.size() || !value.is_number()) {
    refuse(field, "TOKEN=BIAS, such as 15043=-1.5", std::string(text));
  }
  return {{std::string(text.substr(0, digits)), value}};
}

Json parse_value(const Field& field, const SamplingSettings& settings, std::string_view text) {
  if (std::holds_alternative<Member<std::vector<std::string>>>(field.member)) {
    Json stops = settings.stop ? Json(*settings.stop) : Json::array();
    stops.push_back(std::string(text));
    return stops;
  }
  if (std::holds_alternative<Member<std::vector<TokenId>>>(field.member)) {
    Json tokens = settings.stop_token_ids ? Json(*settings.stop_token_ids) : Json::array();
    tokens.push_back(Json::parse(text, nullptr, /*allow_exceptions=*/false));
    if (tokens.back().is_discarded()) refuse(field, "a token id", std::string(text));
    return tokens;
  }
  if (std::holds_alternative<Member<Bias>>(field.member)) {
    Json biases = settings.logit_bias ? shown(*settings.logit_bias) : Json::object();
    biases.update(parse_bias(field, text));
    return biases;
  }
  if (text == "on" || text == "yes") return true;
  if (text == "off" || text == "no") return false;
  const Json value = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  return value.is_discarded() ? Json(std::string(text)) : value;
}

}  // namespace

std::span<const SettingName> sampling_setting_names() {
  static const std::vector<SettingName> names = [] {
    std::vector<SettingName> all;
    for (const Field& field : fields()) all.push_back(field.name);
    return all;
  }();
  return names;
}

bool set_sampling(SamplingSettings& settings, std::string_view name, const Json& value) {
  const Field* field = field_named(name);
  if (field == nullptr) return false;
  std::visit(
      [&](auto member) {
        if (value.is_null()) {
          (settings.*member).reset();
        } else {
          assign(*field, settings.*member, value);
        }
      },
      field->member);
  return true;
}

bool set_sampling_text(SamplingSettings& settings, std::string_view name, std::string_view text) {
  const Field* field = field_named(name);
  return field != nullptr && set_sampling(settings, name, parse_value(*field, settings, text));
}

Json sampling_value(const SamplingSettings& settings, std::string_view name) {
  const Field* field = field_named(name);
  if (field == nullptr) return nullptr;
  return std::visit(
      [&](auto member) { return settings.*member ? shown(*(settings.*member)) : Json(nullptr); },
      field->member);
}

SamplingSettings merged(const SamplingSettings& base, const SamplingSettings& over) {
  SamplingSettings result = base;
  for (const Field& field : fields()) {
    std::visit(
        [&](auto member) {
          if (over.*member) result.*member = over.*member;
        },
        field.member);
  }
  return result;
}

SamplingSettings settings_of(const GenerationConfig& config) {
  SamplingSettings settings;
  settings.temperature = config.temperature;
  settings.top_k = config.top_k;
  settings.top_p = config.top_p;
  settings.repeat_penalty = config.repetition_penalty;
  return settings;
}

Sampling sampling_of(const SamplingSettings& settings) {
  Sampling sampling;
  sampling.temperature = settings.temperature.value_or(sampling.temperature);
  sampling.top_k = std::max(settings.top_k.value_or(sampling.top_k), 0);
  sampling.top_p = settings.top_p.value_or(sampling.top_p);
  sampling.min_p = settings.min_p.value_or(sampling.min_p);
  sampling.typical_p = settings.typical_p.value_or(sampling.typical_p);
  sampling.repetition_penalty = settings.repeat_penalty.value_or(sampling.repetition_penalty);
  sampling.presence_penalty = settings.presence_penalty.value_or(sampling.presence_penalty);
  sampling.frequency_penalty = settings.frequency_penalty.value_or(sampling.frequency_penalty);
  sampling.logit_bias = settings.logit_bias.value_or(Bias{});
  sampling.logprobs = settings.logprobs;
  if (settings.seed.value_or(-1) >= 0) sampling.seed = static_cast<std::uint64_t>(*settings.seed);
  return sampling;
}

}  // namespace inferno
