// Parsing of untrusted JSON: requests, replies of models, and files that come with models.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "chat/json_fwd.h"

namespace inferno {

// An integer beyond 64 bits loses digits when it becomes a floating-point number. Requests are refused,
// because a template may print the number; a model's own files are rounded, because many a
// tokenizer_config.json has 10^30 as model_max_length.
enum class LargeIntegers { refuse, round };

// `name` is the file or field, for messages. Error{corrupt} for invalid JSON (naming the byte), for nesting
// deeper than 256 levels, and for integers beyond 64 bits if they are to be refused. The last value of a
// repeated key counts. Takes linear time.
Json parse_json(std::string_view text, std::string_view name, LargeIntegers large = LargeIntegers::refuse);

// A request that came over a network: also Error{corrupt} for a repeated key, of which a proxy may have read
// the other value, and for nesting deeper than 64 levels. Its own fields may be beyond 64 bits and are
// rounded: their reader checks the range and names the field.
Json parse_request_json(std::string_view text, std::string_view name);

// nullopt if parse_json would fail. For text that a model wrote, which often is not JSON.
std::optional<Json> parse_json_if_valid(std::string_view text, LargeIntegers large = LargeIntegers::refuse);

}  // namespace inferno
