// How text is to be sampled, as far as somebody said so. Flags, the lines of a batch file and `/set` fill the
// same fields under the same names; what nobody said comes from the model's makers, then from Sampling.
#pragma once

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/json.h"
#include "checkpoint/generation_config.h"
#include "engine/request.h"

namespace inferno {

struct SamplingSettings {
  std::optional<int> max_tokens;  // -1: as many as the context holds
  std::optional<float> temperature, top_p, min_p, typical_p, repeat_penalty, presence_penalty,
      frequency_penalty;
  std::optional<int> top_k, logprobs;
  std::optional<std::int64_t> seed;  // -1: another one each time
  std::optional<bool> ignore_eos;
  std::optional<std::vector<std::string>> stop;
  std::optional<std::vector<std::pair<TokenId, float>>> logit_bias;
};

struct SettingName {
  std::string_view name;                  // "top_k"; the flag is --top-k
  std::vector<std::string_view> aliases;  // as other programs call it: "n_predict", or a short flag "-n"
  std::string_view help;
};

// In the order in which they are shown.
std::span<const SettingName> sampling_setting_names();

// False when there is no setting of this name (or alias). Error{invalid_request} naming it when the value is
// of the wrong kind or out of range. null takes the setting back.
bool set_sampling(SamplingSettings& settings, std::string_view name, const Json& value);
// The same from what a person typed. Stop strings and biases add up; every other value replaces.
bool set_sampling_text(SamplingSettings& settings, std::string_view name, std::string_view text);

// As set, for people and for JSON; null for what nobody set.
Json sampling_value(const SamplingSettings& settings, std::string_view name);

// Whatever `over` says, and `base` for the rest.
SamplingSettings merged(const SamplingSettings& base, const SamplingSettings& over);

// What the makers of a model want, as settings.
SamplingSettings settings_of(const GenerationConfig& config);

Sampling sampling_of(const SamplingSettings& settings);

// One flag for each setting.
void add_sampling_options(CLI::App& command, SamplingSettings& settings);

}  // namespace inferno
