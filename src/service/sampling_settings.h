// Sampling settings, each set or not. Flags, the lines of a batch file and `/set` fill the same fields under
// the same names. A setting that is not set has the value the model recommends, else the default of Sampling.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "chat/json_fwd.h"
#include "checkpoint/generation_config.h"
#include "engine/request.h"

namespace inferno {

struct SamplingSettings {
  std::optional<int> max_tokens;  // -1: as many as the context holds
  std::optional<float> temperature, top_p, min_p, typical_p, repeat_penalty, presence_penalty,
      frequency_penalty;
  std::optional<int> min_tokens;  // before which no stop token and no stop string ends the answer
  std::optional<int> top_k, logprobs;
  std::optional<std::int64_t> seed;  // -1: random
  std::optional<bool> ignore_eos;
  std::optional<std::vector<std::string>> stop;
  std::optional<std::vector<TokenId>> stop_token_ids;
  std::optional<std::vector<std::pair<TokenId, float>>> logit_bias;
};

struct SettingName {
  std::string_view name;                  // "top_k"; the flag is --top-k
  std::vector<std::string_view> aliases;  // names in other programs: "n_predict"
  std::string_view help;
};

std::span<const SettingName> sampling_setting_names();

// False if there is no setting of this name or alias. Error{invalid_request} naming the setting if the value
// is of the wrong kind or out of range. null unsets.
bool set_sampling(SamplingSettings& settings, std::string_view name, const Json& value);
// The same from typed text. Stop strings, stop tokens and biases are added to those set; any other value
// replaces.
bool set_sampling_text(SamplingSettings& settings, std::string_view name, std::string_view text);

// The value as JSON; null if it is not set.
Json sampling_value(const SamplingSettings& settings, std::string_view name);

// The settings of `over`, and those of `base` that `over` does not set.
SamplingSettings merged(const SamplingSettings& base, const SamplingSettings& over);

// The settings that a model's authors recommend.
SamplingSettings settings_of(const GenerationConfig& config);

Sampling sampling_of(const SamplingSettings& settings);

}  // namespace inferno
