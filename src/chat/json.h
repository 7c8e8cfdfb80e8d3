// JSON as templates see it: the order of keys is kept, because Python's json keeps it and templates print it.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace inferno {

using Json = nlohmann::ordered_json;

// Integers beyond 64 bits lose digits as floating-point numbers. That is refused where they may be printed,
// and right for a model's own files: many a tokenizer_config.json has 10^30 as model_max_length.
enum class LargeIntegers { refuse, round };

// `name` is the file or field, for messages. Error{corrupt} naming the byte for what is not JSON, for
// nesting deeper than 256, and for integers beyond 64 bits where they are refused. Of a repeated key the last
// value counts, in linear time.
Json parse_json(std::string_view text, std::string_view name, LargeIntegers large = LargeIntegers::refuse);

// nullopt for what parse_json refuses: text of a model, which is often no JSON, and no error then.
std::optional<Json> parse_json_if_valid(std::string_view text);

}  // namespace inferno
